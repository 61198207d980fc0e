import Testing

@testable import Idempotency

struct RecipeTests {
  @Test(arguments: [
    Recipe(),
    Recipe(body: .raw),
    Recipe(body: .none, headers: ["x-tenant"]),
    Recipe(headers: ["a", "b"], ignore: [.json("/sent_at"), .json("/a~1b/~0"), .json("/a,b;c%20 d")]),
    Recipe(ignore: [.json("")]),
    Recipe(ignore: [.json(""), .json("")]),
    Recipe(ignore: [.json("/"), .json(""), .json("/ä/日")]),
    Recipe(headers: [""], ignore: [.json("/h=;i=,")]),
    Recipe(version: .one, headers: ["a"]),
    Recipe(ignore: [.json("/a")], contentLimit: 5),
  ])
  func `the text is read back`(recipe: Recipe) throws {
    let read = try #require(Recipe(text: recipe.text))
    #expect(read == recipe)
    #expect(read.headers == recipe.headers)
    #expect(read.ignore == recipe.ignore)
    #expect(read.body == recipe.body)
    #expect(read.version == recipe.version)
    #expect(read.contentLimit == recipe.contentLimit)
    #expect(recipe.text.utf8.allSatisfy { 0x21...0x7E ~= $0 })
  }

  @Test func `the text is short and plain`() {
    #expect(Recipe().text == "2;auto")
    #expect(Recipe(body: .raw, headers: ["a", "b"], ignore: [.json("/c;d")]).text == "2;raw;h=a,b;i=/c%3Bd")
    #expect(Recipe(version: .one, ignore: [.json("/c")], contentLimit: 5).text == "1;auto;i=/c")
    #expect(Recipe(ignore: [.json("/c")], contentLimit: 5).text == "2;auto;i=/c;z=5")
    #expect(Recipe(body: .raw, contentLimit: 5).text == "2;raw")
  }

  @Test func `the recipe of keys is the first one, whatever later ones are`() {
    #expect(Recipe(headers: ["a"], ignore: [.json("/b")], contentLimit: 5).ofKeys.text == "1;auto;h=a;i=/b")
    #expect(Recipe(body: .none).ofKeys.text == "1;none")
  }

  @Test(arguments: [true, false], [0, 1, 32])
  func `the digests of members are read back with it`(isCut: Bool, count: Int) throws {
    let plain = Recipe(headers: ["a"], ignore: [.json("/b")])
    let members = (0..<count).map { MemberDigests.Member(name: UInt32($0), value: .max - UInt32($0)) }
    let recipe = plain.explaining(MemberDigests(members: members, isCut: isCut))
    let read = try #require(Recipe(text: recipe.text))
    #expect(read == recipe && read != plain)
    #expect(read.members == recipe.members)
    #expect(read.plain == plain && plain.plain == plain)
    #expect(read.headers == ["a"] && read.ignore == [.json("/b")])
    #expect(recipe.explaining(MemberDigests(members: [], isCut: false)).plain == plain)
    #expect(recipe.text.utf8.allSatisfy { 0x21...0x7E ~= $0 })
  }

  @Test func `different recipes have different texts`() {
    let recipes = [
      Recipe(), Recipe(body: .raw), Recipe(body: .none), Recipe(headers: ["a"]), Recipe(headers: ["a", "b"]),
      Recipe(headers: ["b", "a"]), Recipe(headers: ["a,b"]), Recipe(ignore: [.json("a")]),
      Recipe(headers: ["a"], ignore: [.json("b")]),
    ]
    #expect(Set(recipes.map(\.text)).count == recipes.count)
    #expect(Set(recipes).count == recipes.count)
  }

  @Test(arguments: [
    "", "1", "3;auto", "0;auto", "1;auto;z=5", "2;auto;z=1048576", "2;auto;z=-1", "2;raw;z=5", "2;auto;z=05",
    "2;auto;z=5;i=a", "+1;auto", "1;all", "1;auto;", "1;auto;x=a", "1;auto;h=%4",
    "1;auto;h=%+1",
    "1;auto;m=0", "1;auto;m=0000000A00000000", "1;auto;m=;h=a", "1;auto;m=;m=", "1;auto;m=++",
    "1;auto;m=000000000000000g", "1;auto;h=%FF", "1;auto;i=a;h=b", "1;auto;h=a;h=a", "1;auto;h=%61",
    "01;auto",
  ])
  func `a text that no version wrote is refused`(text: String) {
    #expect(Recipe(text: text) == nil)
  }
}
