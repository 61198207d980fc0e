import NIOCore
import Testing
import Wire

@testable import Idempotency

/// The part of a stranger's fields and parameters that is read: up to what decides, and never more than a bound.
struct LongFieldTests {
  private static let upstream = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))

  private static func policy(_ methods: [String], _ path: String) throws -> RoutePolicy {
    RoutePolicy(
      name: "r", match: RouteMatch(methods: methods, path: try PathPattern(parsing: path)), upstream: upstream
    )
  }

  private static func head(_ method: String, _ fields: [(String, String)]) throws -> MessageHead {
    var head = try MessageHead(method: method, target: "/")
    for (name, value) in fields { try head.append(name: name, value: value) }
    return head
  }

  private static func repeated(_ text: String, _ count: Int) -> String {
    String(repeating: text, count: count)
  }

  @Test func `the second overriding method decides, and so does one that is too long`() throws {
    func read(_ values: String...) throws -> MethodOverride {
      MethodOverride(
        try Self.head("POST", values.map { ("X-HTTP-Method-Override", $0) }), query: nil, form: .unread)
    }
    #expect(try read() == .absent)
    #expect(try read(" , ,") == .absent)
    #expect(try read("put") == .one("PUT"))
    #expect(try read("put,delete") == .unclear)
    #expect(try read("put", "put") == .unclear)
    #expect(try read(Self.repeated(",", 64) + "put") == .unclear)
    #expect(try read(Self.repeated("m", 33)) == .unclear)
  }

  @Test func `several overriding methods are refused on the path of any protected method`() throws {
    var off = try Self.policy([], "/off/**")
    off.idempotency = .off
    let table = RouteTable([off, try Self.policy(["DELETE"], "/**")])
    let head = try Self.head("GET", [("X-HTTP-Method", Self.repeated("a,b,", 900))])
    #expect(throws: Problem.badRequest(.methodOverride)) {
      try table.choice(for: head, host: ByteBuffer(), path: ByteBuffer(string: "/a"))
    }
    #expect(
      try table.choice(for: head, host: ByteBuffer(), path: ByteBuffer(string: "/off/a")).route?.policy.name
        == "r")
  }

  @Test func `no preflight announces more than a page sets`() throws {
    func isPreflight(_ names: String) throws -> Bool {
      let head = try Self.head(
        "OPTIONS",
        [
          ("Origin", "https://a"), ("Access-Control-Request-Method", "POST"),
          ("Access-Control-Request-Headers", names),
        ])
      return RouteTable([]).preflight(head) != nil
    }
    #expect(try isPreflight("x-a,x-b"))
    #expect(try isPreflight((1...64).map { "x\($0)" }.joined(separator: ",")))
    #expect(try !isPreflight((1...65).map { "x\($0)" }.joined(separator: ",")))
    #expect(try !isPreflight(Self.repeated("x", 2049)))
  }

  @Test func `a preference and an entity tag count among the first 64`() throws {
    var policy = try Self.policy([], "/**")
    policy.duplicates = .wait
    policy.waitTimeout = .seconds(30)
    for (before, seconds) in [(63, 7), (64, 30)] as [(Int, Int64)] {
      let head = try Self.head("POST", [("Prefer", Self.repeated("a,", before) + "wait=7")])
      #expect(policy.maxWait(for: head) == .seconds(seconds))
    }
    let document = PolicyDocument([policy])
    for (before, status) in [(63, 304), (64, 200)] {
      let head = try Self.head("GET", [("If-None-Match", Self.repeated("a,", before) + "*")])
      #expect(document.response(to: head, host: ByteBuffer()).status == status)
    }
  }

  @Test func `behind a thousand cookies there may be a second one`() throws {
    func finding(_ before: Int) throws -> Bool {
      let head = try Self.head("POST", [("Cookie", Self.repeated("a;", before) + "sid=1")])
      if case .once = head.findCookie("sid") { return true }
      return false
    }
    #expect(try finding(999))
    #expect(try !finding(1000))
  }

  @Test func `a key or a caller is not looked for among more than 256 parameters`() throws {
    func key(_ before: Int, _ separator: String = "&") throws -> KeyFinding {
      let query = ByteBuffer(string: Self.repeated("a" + separator, before) + "k=x")
      return try KeyPolicy(from: .query("k")).keyBeforeBody(head: try Self.head("POST", []), query: query)
    }
    #expect(try key(255) == .found(IdempotencyKey(checked: Array("x".utf8))))
    for separator in ["&", ";"] {
      #expect(throws: Problem.keyInvalid(.hidden, policy: KeyPolicy(from: .query("k")))) {
        try key(256, separator)
      }
    }
    #expect(throws: Problem.callerUnknown(.unreadable(.query("c")))) {
      try CallerPolicy(parts: [.query("c")]).caller(
        head: try Self.head("POST", []), peer: CallerPeer(address: nil),
        query: ByteBuffer(string: Self.repeated("a&", 300) + "c=1"))
    }
  }

  @Test func `a key that no route can allow is not read`() throws {
    let head = try Self.head("POST", [("Idempotency-Key", Self.repeated("k", 16_003))])
    #expect(throws: Problem.keyInvalid(.tooLong, policy: KeyPolicy())) {
      try KeyPolicy().keyBeforeBody(head: head, query: nil)
    }
  }

  @Test(arguments: [
    (repeated("a&", 32), true), (repeated("a&", 33), false), (repeated("&", 5000) + "a", true),
    (repeated("a", 128), true), (repeated("a", 129), false),
  ])
  func `too many parameters beside a GraphQL document may replace it`(query: String, isProven: Bool) throws {
    let head = try Self.head("POST", [("Content-Type", "application/json")])
    let operation = GraphQLOperation(
      of: ByteBuffer(string: #"{"query":"{ a }"}"#), head: head, query: ByteBuffer(string: query))
    #expect(operation == (isProven ? .other : .mutation))
  }

  @Test func `a media type that is too long is ambiguous, and one of many parameters has no boundary`() throws
  {
    let long = try Self.head(
      "POST", [("Content-Type", "application/json;" + Self.repeated(" ", 1024) + "a=b")])
    #expect(MediaType.isAmbiguous(long))
    for (before, isFound) in [(63, true), (64, false)] {
      let value = "multipart/form-data;" + Self.repeated("a;", before) + "boundary=B"
      let head = try Self.head("POST", [("Content-Type", value)])
      #expect((MediaType.of(head)?.boundary(in: head) != nil) == isFound)
    }
  }
}
