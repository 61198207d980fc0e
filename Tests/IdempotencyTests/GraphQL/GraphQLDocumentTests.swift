import Testing

@testable import Idempotency

/// Documents and the operations in them.
struct GraphQLDocumentTests {
  private func reading(_ text: String, wanted: String? = nil) throws -> GraphQLDocument {
    try Array(text.utf8).withUnsafeBytes {
      try GraphQLDocument($0, wanted: wanted.map { Array($0.utf8) })
    }
  }

  @Test(arguments: [
    "{ a }", "query { a }", "query Q($x: In = {a: {b: [1]}}) @d(x: \"}\") { a(x: $x) { b } }",
    "subscription S { a }", "{ mutation }", "query mutation { a }",
    "{ mutation: a(mutation: {mutation: 1}) }",
    "# mutation { a }\n{ a }", "#mutation { a }\r{ a }", "{ a(x: \"mutation { b }\") }",
    "{ a(x: \"\\\" } mutation { b }\") }", "{ a(x: \"\\\\\") }",
    "{ a(x: \"\"\" } mutation { \"b\" } \\\"\"\" mutation { c } \"\"\") }", "{ a(x: \"\", y: \"\"\"\"\"\") }",
    "fragment mutation on T { a } query { ...mutation }", "query { ... on T { mutation { a } } }",
    "\u{FEFF},,query,{,a,}", "{a}{b}query C{c}", "query($x:[Int!]!){a(x:$x,y:-1.5e+3,z:true)}",
    "# mutation", "{ a } # mutation { b }",
  ])
  func `no mutation is found where there is none`(text: String) throws {
    #expect(try !reading(text).hasMutation)
  }

  @Test(arguments: [
    "mutation { a }", "mutation M { a }", "mutation M($x: Int) @d { a }", "mutation@d{a}",
    "mutation($x:Int){a}",
    "{ a } mutation { b }", "query Q { a }\nmutation M { b }", "fragment F on T { a } mutation { ...F }",
    "{ a(x: \"#\") } mutation { b }", "{ a(x: \"\"\"#\"\"\") } mutation { b }", "#\nmutation{a}",
    "#x\rmutation{a}",
    "{ a(x: \"\\\\\") } mutation { b }", "query subscription { a } mutation query { b }",
  ])
  func `a mutation is found wherever it stands`(text: String) throws {
    let document = try reading(text)
    #expect(document.hasMutation)
    #expect(document.mayMutate)
  }

  @Test(arguments: [
    "{", "{ a", "}", "{ a }}", "query", "query Q", "query Q { a", "mutate { a }", "type T { a: Int }",
    "\"x\" { a }",
    "{ a(x: \"y) }", "{ a(x: \"y\n\") }", "{ a(x: \"\"\"y\"\") }", "query \"x\" { a }", "query ) { a }",
    "{ a .. b }",
    "{ a } ; { b }", "{ a } é", "# \u{2028}mutation { a }", "# \u{0B}mutation { a }", "query (\"{\" { a }",
    "extend type T { a: Int }", "1 { a }", "{ a ?}",
    // A backslash before a block string's end makes it part of the string, also behind another one.
    "{ a(x: \"\"\"\\\\\"\"\") } mutation { b }",
  ])
  func `what is no document of operations is not read`(text: String) {
    #expect(throws: GraphQLFault.self) { try reading(text) }
  }

  @Test func `the operation with the given name counts, and any other where there is none`() throws {
    let text = "query Q { a } mutation M { b } subscription S { c }"
    #expect(try !reading(text, wanted: "Q").mayMutate)
    #expect(try reading(text, wanted: "M").mayMutate)
    #expect(try !reading(text, wanted: "S").mayMutate)
    #expect(try reading(text, wanted: "X").mayMutate)
    #expect(try reading(text).mayMutate)
    #expect(try !reading("query Q { a }", wanted: "X").mayMutate)
    #expect(try reading("query Q { a } mutation Q { b }", wanted: "Q").mayMutate)
  }

  @Test(arguments: ["", " # nothing", "fragment F on T { a }"])
  func `a document without an operation may stand for a stored one`(text: String) throws {
    #expect(try reading(text).mayMutate)
  }
}
