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
    "abc,def", "abc, def", ",", "a b", "a\tb", "ä", "a\u{7F}", #"" b""#, #""a ""#, #"" ""#,
  ])
  func `a malformed key is refused`(value: String) {
    #expect(throws: Problem.self) { try Request(("Idempotency-Key", value)).key(KeyPolicy()) }
  }

  @Test(arguments: ["", #""""#])
  func `an empty key yields none`(value: String) throws {
    let head = Request(("Idempotency-Key", value)).head
    #expect(try KeyPolicy().keyBeforeBody(head: head, query: nil) == .missing)
  }

  @Test(arguments: [("abc", "abd"), ("abc", ""), ("", "abc"), ("abc", #""abc""#), ("abc", "ABC")])
  func `a field with two values is refused`(first: String, second: String) {
    let request = Request(("Idempotency-Key", first), ("idempotency-key", second))
    let problem = #expect(throws: Problem.self) { try request.key(KeyPolicy()) }
    #expect(problem == .keyInvalid(.repeated, policy: KeyPolicy()))
  }

  @Test func `equal lines of a field are one key`() throws {
    for lines in 2...3 {
      var request = Request()
      request.fields = (1...lines).map { _ in ("Idempotency-Key", "abc") }
      #expect(try request.key(KeyPolicy()) == "abc")
      request.fields = (1...lines).map { _ in ("Idempotency-Key", "") }
      #expect(try KeyPolicy().keyBeforeBody(head: request.head, query: nil) == .missing)
      request.fields = (1...lines).map { _ in ("Idempotency-Key", "a,b") }
      #expect(throws: Problem.keyInvalid(.comma, policy: KeyPolicy())) { try request.key(KeyPolicy()) }
    }
    let third = Request(("Idempotency-Key", "a"), ("Idempotency-Key", "a"), ("Idempotency-Key", "b"))
    #expect(throws: Problem.keyInvalid(.repeated, policy: KeyPolicy())) { try third.key(KeyPolicy()) }
  }

  @Test func `a quoted key may hold spaces`() throws {
    let request = Request(("Idempotency-Key", #""order 17 a""#))
    #expect(try request.key(KeyPolicy()) == "order 17 a")
    #expect(try KeyPolicy().key(text: #""order 17 a""#) == request.wholeKey(KeyPolicy()))
    #expect(throws: Problem.self) { try KeyPolicy().key(text: "order 17 a") }
    let several = KeyPolicy(from: .composite([.header("a"), .header("b")]))
    let parts = Request(("A", #""x y""#), ("B", "z"))
    #expect(try several.key(texts: ["x y", "z"]) == parts.wholeKey(several))
    // Another source has no quotes.
    var query = Request()
    query.query = "key=a%20b"
    #expect(throws: Problem.self) { try query.key(KeyPolicy(from: .query("key"))) }
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
