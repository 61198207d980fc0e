import Idempotency
import NIOCore
import Testing

/// Keys that name nothing.
struct PlaceholderTests {
  private func key(_ value: String, _ policy: KeyPolicy = KeyPolicy()) throws -> String? {
    try Request(("Idempotency-Key", value)).key(policy)
  }

  @Test(arguments: [
    "undefined", "null", "NULL", "None", "NaN", "nil", "\"null\"", "[object Object]", "\"[object Object]\"",
    "00000000-0000-0000-0000-000000000000", "${uuid}", "order-${id}", "{{id}}", "a{{id}}b", "{${id}}",
  ])
  func `a key that names nothing is refused, unless the route takes it`(value: String) throws {
    var policy = KeyPolicy()
    #expect(throws: Problem.keyInvalid(.placeholder, policy: policy)) { try key(value) }
    policy.placeholders = .accept
    guard !value.hasPrefix("[") else { return }
    #expect(try key(value, policy) != nil)
  }

  @Test(arguments: [
    "undefined1", "nul", "nonesuch", "null-1", "nanny", "00000000-0000-0000-0000-000000000001", "$id", "{id}",
    "a}b{c", "{\"a\":{\"b\":1}}", "${id", "{{id}", "0", "NULL.", "a$b{}",
  ])
  func `any other key is taken`(value: String) throws {
    #expect(try key(value) == value)
  }

  @Test func `a part of a key that names nothing is refused`() throws {
    let policy = KeyPolicy(from: .composite([.query("token"), .json("/page")]))
    func key(_ query: String, _ body: String) throws -> IdempotencyKey? {
      var request = Request("application/json", body)
      request.query = query
      return try request.wholeKey(policy)
    }
    #expect(try key("token=a", #"{"page":"1"}"#) != nil)
    for (query, body) in [("token=undefined", #"{"page":1}"#), ("token=a", #"{"page":"None"}"#)] {
      #expect(throws: Problem.keyInvalid(.placeholder, policy: policy)) { try key(query, body) }
    }
    #expect(throws: Problem.keyInvalid(.placeholder, policy: policy)) {
      try policy.key(texts: ["a", "null"])
    }
  }

  @Test(arguments: [
    ([("Idempotency-Key", "")], true), ([("Idempotency-Key", "\"\"")], true), ([], false),
    ([("Idempotency-Key", "a")], false), ([("X-Key", "")], false),
    ([("Idempotency-Key", ""), ("Idempotency-Key", "")], true),
  ])
  func `an empty field is one that its client believes to be a key`(fields: [(String, String)], isEmpty: Bool)
  {
    var request = Request()
    request.fields = fields
    #expect(KeyPolicy(from: .header("idempotency-key"), .query("key")).hasEmptyField(request.head) == isEmpty)
  }
}
