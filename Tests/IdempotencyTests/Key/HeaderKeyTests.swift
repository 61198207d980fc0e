import Idempotency
import NIOCore
import Testing

/// Keys in a header field.
struct HeaderKeyTests {
  @Test(arguments: [
    ("abc", "abc"),
    (#""abc""#, "abc"),
    (#""a\"b\\c""#, #"a"b\c"#),
    (#""a,b""#, "a,b"),
    (#"a"b"#, #"a"b"#),
    ("a;b=c", "a;b=c"),
    ("!~", "!~"),
    (#"a\b"#, #"a\b"#),
  ])
  func `a key is read from its field`(value: String, key: String) throws {
    #expect(try Request(("idempotency-KEY", value)).key(KeyPolicy()) == key)
  }

  @Test(arguments: [
    #""abc"#, #""abc"x"#, #""abc" "#, #""abc";a=1"#, #""abc", "def""#, #"""#, #""a\b""#, #""a\"#, "\"a\tb\"",
    "\"ä\"",
    "abc,def", "abc, def", ",", "a b", "a\tb", "ä", "a\u{7F}", #""a b""#,
  ])
  func `a malformed key is refused`(value: String) {
    #expect(throws: Problem.self) { try Request(("Idempotency-Key", value)).key(KeyPolicy()) }
  }

  @Test(arguments: ["", #""""#])
  func `an empty key yields none`(value: String) throws {
    let head = Request(("Idempotency-Key", value)).head
    #expect(try KeyPolicy().keyBeforeBody(head: head, query: nil) == .missing)
  }

  @Test(arguments: [("abc", "abc"), ("abc", ""), ("", "")])
  func `a repeated field is refused`(first: String, second: String) {
    let request = Request(("Idempotency-Key", first), ("idempotency-key", second))
    let problem = #expect(throws: Problem.self) { try request.key(KeyPolicy()) }
    #expect(problem == .keyInvalid(.repeated, policy: KeyPolicy()))
  }

  @Test func `two names of one field are two sources`() throws {
    let policy = KeyPolicy(from: .header("idempotency-key"), .header("x-client-request-id"))
    #expect(try Request(("X-Client-Request-ID", "b"), ("Idempotency-Key", "a")).key(policy) == "a")
    #expect(try Request(("X-Client-Request-ID", "b"), ("Idempotency-Key", "")).key(policy) == "b")
    #expect(try Request(("X-Client-Request-IDs", "b")).key(policy) == nil)
    #expect(throws: Problem.self) {
      try Request(("X-Client-Request-ID", "b"), ("Idempotency-Key", "a,b")).key(policy)
    }
  }

  @Test func `quoted and bare spellings are one key`() throws {
    let policy = KeyPolicy()
    let bare = try Request(("Idempotency-Key", "abc")).wholeKey(policy)
    let quoted = try Request(("Idempotency-Key", "\"abc\"")).wholeKey(policy)
    #expect(bare != nil)
    #expect(bare == quoted)
  }
}
