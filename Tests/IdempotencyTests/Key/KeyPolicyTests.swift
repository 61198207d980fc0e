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
