import Idempotency
import Testing

/// Members that stay out of the fingerprint.
struct IgnoreTests {
  private func digest(_ body: String, _ ignore: [String]) -> Digest256 {
    Request("application/json", body).fingerprint(Recipe(ignore: ignore.map(PayloadPart.json))).digest
  }

  @Test(arguments: [
    (["/sent_at"], #"{"a":1,"sent_at":5}"#, #"{"sent_at":{"x":[6]},"a":1}"#),
    (["/sent_at"], #"{"a":1,"sent_at":5}"#, #"{"a":1}"#),
    (["/sent_at"], #"{"sent_at":5}"#, "{}"),
    (["/sent_at"], #"{"s\u0065nt_at":5}"#, "{}"),
    (["/a/b"], #"{"a":{"b":1,"c":2}}"#, #"{"a":{"c":2,"b":3}}"#),
    (["/a", "/b/c"], #"{"a":1,"b":{"c":2},"d":3}"#, #"{"b":{},"d":3}"#),
    (["/a", "/a/b"], #"{"a":{"b":1,"c":2}}"#, "{}"),
    (["/a~1b", "/c~0"], #"{"a/b":1,"c~":2}"#, "{}"),
    (["/items/1/at"], #"{"items":[{"at":1},{"at":2,"x":3}]}"#, #"{"items":[{"at":1},{"at":9,"x":3}]}"#),
    (["/0/at"], #"[{"at":1},2]"#, "[{},2]"),
    (["/0"], #"{"0":1}"#, "{}"),
    (["/"], #"{"":1}"#, "{}"),
  ])
  func `ignored members make no difference`(ignore: [String], left: String, right: String) {
    #expect(digest(left, ignore) == digest(right, ignore))
    #expect(digest(left, []) != digest(right, []))
  }

  @Test(arguments: [
    (["/sent_at"], #"{"a":{"sent_at":5}}"#, #"{"a":{"sent_at":6}}"#),
    (["/sent_at"], #"{"Sent_at":5}"#, "{}"),
    (["/a/b"], #"{"a":{"c":1}}"#, #"{"a":{"c":2}}"#),
    (["/a/b"], #"{"a":1}"#, "{}"),
    (["/a/b"], #"{"b":1}"#, "{}"),
    (["/items/1/at"], #"{"items":[{"at":1},{"at":2}]}"#, #"{"items":[{"at":3},{"at":2}]}"#),
    (["/items/1"], #"{"items":[1,2]}"#, #"{"items":[1,3]}"#),
    (["/items/01/at"], #"{"items":[1,{"at":2}]}"#, #"{"items":[1,{"at":3}]}"#),
    (["/items/at"], #"{"items":[{"at":2}]}"#, #"{"items":[{"at":3}]}"#),
    ([""], #"{"a":1}"#, #"{"a":2}"#),
    (["a"], #"{"a":1}"#, #"{"a":2}"#),
  ])
  func `only members at their pointers are ignored`(ignore: [String], left: String, right: String) {
    #expect(digest(left, ignore) != digest(right, ignore))
  }

  @Test func `a pointer is ignored in a body that counts as bytes`() {
    #expect(digest(#"{"a":1,"a":2}"#, ["/a"]) != digest(#"{"a":1,"a":3}"#, ["/a"]))
  }

  @Test(arguments: ["/a", "", "/", "/a/b~0~1", "//"])
  func `pointers are read`(text: String) {
    #expect(JSONPointer(text) != nil)
  }

  @Test(arguments: ["a", "a/b", "#/a", "/~", "/~2", "/a~"])
  func `an invalid pointer is refused`(text: String) {
    #expect(JSONPointer(text) == nil)
  }
}
