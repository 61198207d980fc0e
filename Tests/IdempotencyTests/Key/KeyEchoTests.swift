import Idempotency
import NIOCore
import Testing

/// The line by which a response repeats the request's key.
struct KeyEchoTests {
  private func echo(_ policy: KeyPolicy, _ request: Request) throws -> String? {
    let key = try #require(try request.wholeKey(policy))
    return policy.echo(of: key, in: request.head).map { String(buffer: $0) }
  }

  @Test(arguments: ["abc", "\"abc\"", "\"a b, c\""])
  func `the request's own line is repeated, as the client spelt it`(value: String) throws {
    let request = Request(("A", "1"), ("IDEMPOTENCY-key", value))
    #expect(try echo(KeyPolicy(), request) == "IDEMPOTENCY-key: \(value)\r\n")
  }

  @Test func `a field that does not hold the key is not its line`() throws {
    var request = Request(("Idempotency-Key", "other"))
    request.query = "k=abc"
    #expect(
      try echo(KeyPolicy(from: .query("k"), .header("idempotency-key")), request)
        == "Idempotency-Key: abc\r\n")
  }

  @Test(arguments: [("abc", "abc"), ("a,b", "\"a,b\""), ("\"a\\b", #""\"a\\b""#)])
  func `a key from elsewhere is read from its line as the same key`(key: String, value: String) throws {
    let text = key.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    let request = Request("application/json", "{\"id\":\"\(text)\"}")
    #expect(try echo(KeyPolicy(from: .json("/id")), request) == "Idempotency-Key: \(value)\r\n")
    #expect(try Request(("Idempotency-Key", value)).key(KeyPolicy()) == key)
  }

  @Test func `a key of several values, or of the payload, has none`() throws {
    var request = Request("application/json", "{}")
    request.query = "a=1&b=2"
    #expect(try echo(KeyPolicy(from: .composite([.query("a"), .query("b")])), request) == nil)
    #expect(try echo(KeyPolicy(from: .payload), request) == nil)
  }
}
