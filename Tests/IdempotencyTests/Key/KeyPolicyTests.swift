import Idempotency
import NIOCore
import Testing

/// The rules that every key must keep, whatever source it comes from.
struct KeyPolicyTests {
  private func fault(_ key: String, _ policy: KeyPolicy) -> Problem? {
    do {
      _ = try Request(("Idempotency-Key", key)).key(policy)
      return nil
    } catch {
      return error
    }
  }

  @Test func `the length is bounded`() {
    var policy = KeyPolicy()
    #expect(fault(String(repeating: "a", count: 255), policy) == nil)
    #expect(fault(String(repeating: "a", count: 256), policy) == .keyInvalid(.tooLong, policy: policy))
    policy.minLength = 8
    #expect(fault("12345678", policy) == nil)
    #expect(fault("1234567", policy) == .keyInvalid(.tooShort, policy: policy))
    // The key counts, not its spelling.
    #expect(fault("\"123456\"", policy) == .keyInvalid(.tooShort, policy: policy))
  }

  @Test(arguments: [
    ("018f3a0c-1111-7abc-8def-0123456789ab", true),
    ("018F3A0C-1111-7ABC-8DEF-0123456789AB", true),
    ("\"018f3a0c-1111-7abc-8def-0123456789ab\"", true),
    ("018f3a0c11117abc8def0123456789ab", false),
    ("018f3a0c-1111-7abc-8def-0123456789a", false),
    ("018f3a0c-1111-7abc-8def-0123456789abc", false),
    ("018f3a0c-1111-7abc-8def-0123456789ag", false),
    ("018f3a0c-1111-7abc-8def0-123456789ab", false),
    ("{018f3a0c-1111-7abc-8def-0123456789a}", false),
  ])
  func `the format uuid allows UUIDs alone`(key: String, isAllowed: Bool) {
    var policy = KeyPolicy()
    policy.format = .uuid
    #expect(fault(key, policy) == (isAllowed ? nil : .keyInvalid(.notUUID, policy: policy)))
  }

  @Test(arguments: ["a=1;key=v", "+key=v", "%20key=v", "key%00=v", "a;key=v&b=1"])
  func `a query in which only some readers find the key is refused`(query: String) throws {
    let policy = KeyPolicy(from: .query("key"), .header("idempotency-key"))
    var request = Request(("Idempotency-Key", "from-header"))
    request.query = query
    #expect(throws: Problem.keyInvalid(.hidden, policy: policy)) {
      try policy.keyBeforeBody(head: request.head, query: request.queryBuffer)
    }
    #expect(throws: Problem.keyInvalid(.hidden, policy: policy)) { try request.key(policy) }
    request.query = query + "&key=plain"
    #expect(try request.key(policy) == "plain")
    request.query = "other=a;b"
    #expect(try request.key(policy) == "from-header")
  }

  @Test func `a source in the body waits for it`() throws {
    let policy = KeyPolicy(from: .header("idempotency-key"), .json("/id"), .query("key"))
    var request = Request("application/json", #"{"id":"from-body"}"#)
    request.query = "key=from-query"
    #expect(try policy.keyBeforeBody(head: request.head, query: request.queryBuffer) == .needsBody)
    #expect(try request.key(policy) == "from-body")
    request.body = Array("{}".utf8)
    #expect(try request.key(policy) == "from-query")
    request.fields.append(("Idempotency-Key", "from-header"))
    let early = try policy.keyBeforeBody(head: request.head, query: request.queryBuffer)
    guard case .found(let key) = early else {
      Issue.record("found no key in the header")
      return
    }
    #expect(key.bytes == Array("from-header".utf8))
    #expect(try request.key(policy) == "from-header")
  }

  @Test func `a key of several parts needs each of them`() throws {
    let pages = KeySource.composite([.query("token"), .query("page")])
    let policy = KeyPolicy(from: pages, .header("idempotency-key"))
    func key(_ query: String, _ header: String? = nil) throws -> IdempotencyKey? {
      var request = Request()
      request.query = query
      if let header { request.fields = [("Idempotency-Key", header)] }
      let early = try policy.keyBeforeBody(head: request.head, query: request.queryBuffer)
      let key = try request.wholeKey(policy)
      #expect(early == key.map(KeyFinding.found) ?? .missing)
      return key
    }
    let keys = try [
      "token=a&page=1", "token=a&page=2", "token=b&page=1", "token=a1&page=%31", "token=1&page=a",
    ].map { try #require(try key($0)) }
    #expect(Set(keys).count == keys.count)
    #expect(try key("page=1&x=2&token=a") == keys[0])
    for query in ["token=a", "page=1", "token=&page=1", ""] {
      #expect(try key(query) == nil)
      #expect(try key(query, "a1")?.bytes == Array("a1".utf8))
    }
    for query in ["token=a&token=a&page=1", "token=a&page=%0", "token=a&page=%20"] {
      #expect(throws: Problem.self) { try key(query) }
    }
    #expect(Problem.keyMissing(policy).detail.contains("parameter token and the query parameter page"))
  }

  @Test func `parts of a key cannot run into each other, nor pose as a whole key`() throws {
    let policy = KeyPolicy(from: .composite([.json("/a"), .header("b"), .form("c")]), .json("/a"))
    var request = Request("application/json", #"{"a":"x"}"#)
    request.fields.append(("B", "y"))
    #expect(try policy.keyBeforeBody(head: request.head, query: nil) == .needsBody)
    // A body is of one type: the form's field is missing.
    #expect(try request.key(policy) == "x")
    let pair = KeyPolicy(from: .composite([.header("a"), .header("b")]))
    var seen: Set<IdempotencyKey> = []
    let values = ["x", "xx", "xy", "y", "!", "!!", String(repeating: "x", count: 200)]
    for first in values {
      for second in values {
        let key = try #require(try Request(("A", first), ("B", second)).wholeKey(pair))
        // No client's own key has such a byte.
        #expect(key.bytes.first == 0)
        seen.insert(key)
      }
    }
    #expect(seen.count == values.count * values.count)
  }

  @Test func `the rules hold for each part`() throws {
    var policy = KeyPolicy(from: .composite([.header("a"), .header("b")]))
    policy.maxLength = 2
    #expect(try Request(("A", "xx"), ("B", "yy")).wholeKey(policy) != nil)
    #expect(throws: Problem.keyInvalid(.tooLong, policy: policy)) {
      try Request(("A", "xx"), ("B", "yyy")).wholeKey(policy)
    }
  }

  @Test func `a payload is the key of a request without another one`() throws {
    let policy = KeyPolicy(from: .header("idempotency-key"), .payload)
    let first = Request("application/json", #"{"a":1,"b":2}"#)
    #expect(try policy.keyBeforeBody(head: first.head, query: nil) == .needsBody)
    let key = try #require(try first.wholeKey(policy))
    #expect(key.isOfPayload && key.bytes.count == 33)
    #expect(try Request("application/json", #"{"b":2, "a":1}"#).wholeKey(policy) == key)
    #expect(try Request("application/json", #"{"b":2, "a":2}"#).wholeKey(policy) != key)
    var keyed = first
    keyed.fields.append(("Idempotency-Key", "k"))
    let own = try #require(try keyed.wholeKey(policy))
    #expect(!own.isOfPayload && own.bytes == Array("k".utf8))
  }

  @Test func `an operator writes a text for each part`() throws {
    let policy = KeyPolicy(from: .composite([.query("a"), .query("b")]), .json("/id"), .payload)
    var request = Request()
    request.query = "a=1&b=2"
    #expect(try policy.key(texts: ["1", "2"]) == request.wholeKey(policy))
    #expect(try policy.key(texts: ["k"]).bytes == Array("k".utf8))
    for texts in [["1", "2", "3"], ["1", ""], []] {
      #expect(throws: Problem.keyMissing(policy)) { try policy.key(texts: texts) }
    }
    let pair = KeyPolicy(from: .composite([.query("a"), .query("b")]))
    #expect(throws: Problem.keyMissing(pair)) { try pair.key(texts: ["1"]) }
  }

  @Test func `a query's key is found without the body`() throws {
    let policy = KeyPolicy(from: .query("key"), .json("/id"))
    let found = try policy.keyBeforeBody(head: Request().head, query: ByteBuffer(string: "key=a"))
    guard case .found(let key) = found else {
      Issue.record("found no key in the query")
      return
    }
    #expect(key.bytes == Array("a".utf8))
  }

  @Test func `an operator's text is parsed as the header that may carry it`() throws {
    let header = KeyPolicy(from: .header("idempotency-key"))
    #expect(try header.key(text: "abc").bytes == Array("abc".utf8))
    #expect(try header.key(text: #""abc""#).bytes == Array("abc".utf8))
    #expect(try header.key(text: #""a\"c""#).bytes == Array(#"a"c"#.utf8))
    for (text, fault) in [
      ("a,b", KeyFault.comma), (#""abc"#, .malformedString), (#""a"b"#, .malformedString),
    ] {
      #expect(throws: Problem.keyInvalid(fault, policy: header)) { try header.key(text: text) }
    }
    #expect(throws: Problem.keyMissing(header)) { try header.key(text: #""""#) }
    let mixed = KeyPolicy(from: .header("idempotency-key"), .json("/id"))
    #expect(try mixed.key(text: #""abc""#).bytes == Array("abc".utf8))
    #expect(try mixed.key(text: "a,b").bytes == Array("a,b".utf8))
    let body = KeyPolicy(from: .json("/id"))
    #expect(try body.key(text: #""abc""#).bytes == Array(#""abc""#.utf8))
  }
}
