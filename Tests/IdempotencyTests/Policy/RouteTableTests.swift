import Idempotency
import NIOCore
import Testing
import Wire

struct RouteTableTests {
  private static let upstream = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))

  private static func table(
    _ matches: [RouteMatch], _ change: (inout RoutePolicy) -> Void = { _ in }
  ) -> RouteTable {
    RouteTable(
      matches.enumerated().map { index, match in
        var policy = RoutePolicy(name: "r\(index)", match: match, upstream: upstream)
        change(&policy)
        return policy
      })
  }

  private static func orders() throws -> RouteTable {
    let orders = try PathPattern(parsing: "/v1/orders")
    return table([
      RouteMatch(methods: ["POST", "PUT"], path: orders, host: "Api.example.com"),
      RouteMatch(methods: ["POST"], path: orders),
      RouteMatch(path: try PathPattern(parsing: "/v1/**")),
      RouteMatch(methods: ["GET"]),
    ])
  }

  private static func route(
    _ table: RouteTable, _ method: String, _ host: String = "x", _ path: String = "/",
    _ fields: [(String, String)] = []
  ) -> Route? {
    var request = Request()
    request.fields = fields
    return Array(method.utf8).withUnsafeBytes { method in
      Array(host.utf8).withUnsafeBytes { host in
        Array(path.utf8).withUnsafeBytes {
          table.route(for: request.head, method: method, host: host, path: $0)
        }
      }
    }
  }

  @Test(arguments: [
    ("POST", "api.example.com", "/v1/orders", 0), ("PUT", "API.EXAMPLE.COM", "/v1/orders", 0),
    ("POST", "", "/v1/orders", 1), ("POST", "api.example.co", "/v1/orders", 1),
    ("PUT", "other", "/v1/orders", 2), ("LOCK", "x", "/v1/", 2), ("GET", "x", "/v1/", 3),
    ("GET", "x", "/", 3), ("GET", "x", "*", 3),
  ]) func `a request gets the first route that matches`(
    method: String, host: String, path: String, index: Int
  ) throws {
    let route = Self.route(try Self.orders(), method, host, path)
    #expect(route?.index == index)
    #expect(route?.policy.name == "r\(index)")
  }

  @Test func `a request that matches no route gets none`() throws {
    let table = try Self.orders()
    #expect(Self.route(table, "DELETE") == nil)
    #expect(Self.route(table, "HEAD", "x", "/v1/orders") == nil)
    #expect(Self.route(table, "", "", "") == nil)
  }

  @Test func `a route is the same object for all of its requests`() throws {
    let table = try Self.orders()
    #expect(Self.route(table, "GET", "x", "/") === Self.route(table, "GET", "y", "/z"))
    #expect(table.routes.map(\.index) == [0, 1, 2, 3])
  }

  @Test(
    arguments: ["POST", "PUT", "DELETE", "PATCH", "PROPFIND", "WHATEVER"],
    ["GET", "HEAD", "OPTIONS", "TRACE"])
  func `without methods a protected route matches all unsafe methods`(changing: String, reading: String) {
    let table = Self.table([RouteMatch()])
    #expect(Self.route(table, changing) != nil)
    #expect(Self.route(table, reading) == nil)
    let open = Self.table([RouteMatch()]) { $0.idempotency = .off }
    #expect(Self.route(open, changing) != nil && Self.route(open, reading) != nil)
  }

  @Test(arguments: [
    ("a.example.com", true), ("A.B.EXAMPLE.com", true), ("example.com", false), (".example.com", false),
    ("aexample.com", false), ("a.example.org", false), ("", false),
  ]) func `a wildcard matches the hosts below a name`(host: String, fits: Bool) {
    let table = Self.table([RouteMatch(host: "*.Example.com")])
    #expect((Self.route(table, "POST", host) != nil) == fits)
  }

  @Test func `all of a route's headers must be present`() {
    let table = Self.table([
      RouteMatch(headers: [
        RequiredHeader(name: "x-api-version", value: "2"), RequiredHeader(name: "b", value: "c"),
      ])
    ])
    func fits(_ fields: (String, String)...) -> Bool { Self.route(table, "POST", "x", "/", fields) != nil }
    #expect(fits(("X-API-Version", "2"), ("B", "c")))
    #expect(fits(("B", "x"), ("b", "c"), ("x-api-version", "2")))
    #expect(!fits(("X-Api-Version", "2")))
    #expect(!fits(("X-Api-Version", "2"), ("B", "C")))
    #expect(!fits(("X-Api-Version", "2, 3"), ("B", "c")))
    #expect(!fits())
  }

  @Test func `a key is looked for in the fields of every route`() {
    let table = Self.table([RouteMatch()]) { $0.key.from = [.query("k"), .header("x-client-request-id")] }
    func carries(_ fields: (String, String)...) -> Bool {
      var request = Request()
      request.fields = fields
      return table.carriesKey(request.head)
    }
    #expect(carries(("Idempotency-Key", "k")))
    #expect(carries(("X-Client-Request-ID", "k")))
    #expect(carries(("Idempotency-Key", ""), ("Idempotency-Key", "")))
    #expect(!carries(("Idempotency-Key", ""), ("X-Request-Id", "k")))
    #expect(!carries())
  }

  @Test func `a part of a key in a field makes a request no preflight, and is no key by itself`() throws {
    let sources: [KeySource] = [
      .composite([.header("x-a"), .header("x-b")]), .composite([.header("x-c"), .query("k")]),
      .composite([.header("origin"), .header("x-d")]), .header("referer"), .query("k"),
    ]
    let table = Self.table([RouteMatch(methods: ["OPTIONS"])]) { $0.key.from = sources }
    func head(_ fields: [(String, String)]) throws -> MessageHead {
      var head = try MessageHead(method: "OPTIONS", target: "/o?k=1")
      let preflight = [("Origin", "https://a"), ("Access-Control-Request-Method", "POST")]
      for (name, value) in preflight + fields { try head.append(name: name, value: value) }
      return head
    }
    for fields in [
      [], [("User-Agent", "a"), ("Accept", "*/*")], [("X-A", ""), ("X-B", "\"\"")], [("X-E", "1")],
    ] as [[(String, String)]] {
      #expect(table.preflight(try head(fields)) != nil, "\(fields)")
    }
    for fields in [
      [("X-A", "1"), ("X-B", "2")], [("X-A", "1")], [("x-b", "1")], [("X-A", ""), ("X-A", "")],
      [("X-C", "1")], [("X-D", "1")],
    ] {
      #expect(table.preflight(try head(fields)) == nil, "\(fields)")
      #expect(!table.carriesKey(try head(fields)), "\(fields)")
    }
    for name in ["Idempotency-Key", "Referer"] {
      #expect(table.preflight(try head([(name, "1")])) == nil)
      #expect(table.carriesKey(try head([(name, "1")])))
    }
  }

  @Test(
    arguments: [
      (.header("a"), false), (.header("origin"), false), (.json("/a"), false), (.form("a"), false),
      (.query("a"), true), (.payload, true), (.composite([.query("a"), .query("b")]), true),
      (.composite([.query("a"), .json("/b")]), false), (.composite([.query("a"), .header("b")]), false),
      (.composite([.query("a"), .header("origin")]), true),
    ] as [(KeySource, Bool)])
  func `a key beside the body and the fields of a page fits a preflight`(source: KeySource, fits: Bool) {
    #expect(source.fitsPreflight == fits)
  }
}
