import Idempotency
import NIOCore
import Testing
import Wire

/// The method by which a request meets its route.
struct RouteChoiceTests {
  private static let overrides = [
    "X-HTTP-Method-Override", "X-HTTP-Method", "x-method-override", "HTTP-Method-Override", "X-Method",
    "X-Http-Verb",
  ]

  private static func policy(
    _ name: String, _ methods: [String], _ idempotency: RoutePolicy.Idempotency = .required
  ) throws -> RoutePolicy {
    var policy = RoutePolicy(
      name: name, match: RouteMatch(methods: methods, path: try PathPattern(parsing: "/\(name.prefix(1))")),
      upstream: UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1)))
    policy.idempotency = idempotency
    return policy
  }

  private static func table() throws -> RouteTable {
    RouteTable([
      try policy("a-post", ["POST"]), try policy("a-put", ["PUT"]), try policy("b-all", []),
      try policy("c-off", ["POST"], .off), try policy("d-off", [], .off), try policy("d-lock", ["LOCK"]),
      try policy("e-off", ["POST"], .off), try policy("e-delete", ["DELETE"]), try policy("f-lock", ["LOCK"]),
    ])
  }

  private func choice(
    _ method: String, _ path: String, _ fields: [(String, String)] = []
  ) throws -> RouteTable.Choice {
    var head = try MessageHead(method: method, target: path)
    for (name, value) in fields { try head.append(name: name, value: value) }
    return try Self.table().choice(for: head, host: ByteBuffer(), path: ByteBuffer(string: path))
  }

  @Test(arguments: [
    ("post", "/a"), ("Put", "/a"), ("post", "/b"), ("deleTE", "/b"), ("post", "/c"), ("lock", "/f"),
  ])
  func `a route's method in another case is refused`(method: String, path: String) {
    #expect(throws: Problem.badRequest(.methodCase)) { try choice(method, path) }
  }

  @Test func `a shadowed route refuses no method`() throws {
    var shadowed = try Self.policy("a-post", ["POST"])
    shadowed.shadow = true
    var other = try Self.policy("a-put", ["PUT"])
    other.shadow = true
    let table = RouteTable([shadowed, other])
    func choice(_ method: String, override: String? = nil) throws -> RouteTable.Choice {
      var head = try MessageHead(method: method, target: "/a")
      if let override { try head.append(name: "X-HTTP-Method-Override", value: override) }
      return try table.choice(for: head, host: ByteBuffer(), path: ByteBuffer(string: "/a"))
    }
    #expect(try choice("post").route == nil)
    let overridden = try choice("POST", override: "PUT, PATCH")
    #expect(overridden.route?.policy.name == "a-post" && !overridden.isAmbiguous)
  }

  @Test func `a whole request meets the route that its body decides on`() throws {
    func policy(_ name: String, graphql: RouteMatch.GraphQL? = nil, shadow: Bool = false) -> RoutePolicy {
      var policy = RoutePolicy(
        name: name, match: RouteMatch(methods: ["POST"], graphql: graphql),
        upstream: UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1)))
      policy.maxRequestBody = 100
      policy.shadow = shadow
      return policy
    }
    func choice(_ body: String, shadow: Bool = false) throws -> String? {
      var head = try MessageHead(method: "POST", target: "/g")
      try head.append(name: "Content-Type", value: "application/json")
      let table = RouteTable([policy("mutations", graphql: .mutation, shadow: shadow), policy("rest")])
      return try table.choice(
        for: head, host: ByteBuffer(), target: try RequestTarget(head), body: ByteBuffer(string: body)
      ).route?.policy.name
    }
    let long = #"{"query":"{a}","pad":"\#(String(repeating: "x", count: 100))"}"#
    for shadow in [false, true] {
      #expect(try choice(#"{"query":"mutation{a}"}"#, shadow: shadow) == "mutations")
      #expect(try choice(#"{"query":"{a}"}"#, shadow: shadow) == "rest")
    }
    #expect(throws: Problem.requestTooLarge(limit: 100)) { try choice(long) }
    #expect(try choice(long, shadow: true) == "mutations")
  }

  @Test(arguments: [
    ("get", "/a"), ("get", "/c"), ("post", "/d"), ("post", "/x"), ("LOCK", "/a"), ("PURGE", "/a"),
  ])
  func `another method is passed through`(method: String, path: String) throws {
    #expect(try choice(method, path).route?.policy.name == (path == "/d" ? "d-off" : nil))
  }

  @Test(arguments: [
    // The record of the protected method, whichever of the two it is.
    ("POST", "/a", "GET", "a-post", "POST", "POST GET"), ("POST", "/a", "foo", "a-post", "POST", "POST FOO"),
    ("POST", "/e", "DELETE", "e-delete", "DELETE", "POST DELETE"),
    ("GET", "/a", "post", "a-post", "POST", "GET POST"), ("GET", "/f", "lock", "f-lock", "LOCK", "GET LOCK"),
    // Nothing is overridden.
    ("POST", "/a", "post", "a-post", "POST", "POST"), ("POST", "/a", " , ", "a-post", "POST", "POST"),
    // Nothing is protected.
    ("POST", "/c", "PUT", "c-off", "POST", "POST"), ("GET", "/x", "POST", nil, "GET", "GET"),
  ]) func `an overriding method counts as well`(
    method: String, path: String, overriding: String, name: String?, identity: String, fingerprint: String
  ) throws {
    for field in Self.overrides {
      let choice = try choice(method, path, [(field, overriding)])
      #expect(choice.route?.policy.name == name)
      #expect(String(buffer: choice.method) == identity)
      #expect(String(buffer: choice.fingerprintMethod) == fingerprint)
      #expect(!choice.isAmbiguous)
    }
  }

  @Test(arguments: [
    ("POST", "/a", "PUT"), ("PUT", "/a", "post"), ("POST", "/b", "PATCH"), ("POST", "/b", "X"),
  ])
  func `either of two protected methods may run`(method: String, path: String, overriding: String) throws {
    for field in Self.overrides { #expect(try choice(method, path, [(field, overriding)]).isAmbiguous) }
  }

  @Test func `contradicting or repeated overriding methods are refused where one may be protected`() throws {
    let fields = [("X-HTTP-Method", "PUT"), ("X-HTTP-Method-Override", "PATCH")]
    let refused = [
      fields, [("X-HTTP-Method", "GET, PUT")], [("X-HTTP-Method", "GET, GET")],
      [("X-HTTP-Method", "POST"), ("X-Method", "GET")], [("X-HTTP-Verb", "GET"), ("X-HTTP-Verb", "get")],
    ]
    for fields in refused {
      #expect(throws: Problem.badRequest(.methodOverrides)) { try choice("POST", "/a", fields) }
      #expect(try choice("POST", "/c", fields).route?.policy.name == "c-off")
    }
    #expect(throws: Problem.badRequest(.methodOverrides)) { try choice("GET", "/a", fields) }
    let same = [("X-HTTP-Method", "GET"), ("X-HTTP-Method-Override", "get")]
    #expect(try String(buffer: choice("POST", "/a", same).fingerprintMethod) == "POST GET")
  }

  @Test(
    arguments: [
      (nil, nil, false), ("X-HTTP-Method-Override", nil, true), (nil, "_method=DELETE", true),
      (nil, "a=1&%5Fmethod=put", true), (nil, "method=DELETE", false), ("X-Methods", "a=_method", false),
    ] as [(String?, String?, Bool)])
  func `a field or the query may name another method, and the request is then not sent twice`(
    field: String?, query: String?, mayOverride: Bool
  ) throws {
    var head = try MessageHead(method: "GET", target: "/q")
    if let field { try head.append(name: field, value: "DELETE") }
    #expect(head.mayOverrideMethod(query: query.map { ByteBuffer(string: $0) }) == mayOverride)
  }
}
