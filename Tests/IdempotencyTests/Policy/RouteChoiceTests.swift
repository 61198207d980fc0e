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
    _ name: String, _ methods: [String], _ idempotency: RoutePolicy.Idempotency = .required,
    override: Bool = false
  ) throws -> RoutePolicy {
    var policy = RoutePolicy(
      name: name, match: RouteMatch(methods: methods, path: try PathPattern(parsing: "/\(name.prefix(1))")),
      upstream: UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1)))
    policy.idempotency = idempotency
    policy.methodOverride = override
    return policy
  }

  private static func table() throws -> RouteTable {
    RouteTable([
      try policy("a-post", ["POST"]), try policy("a-put", ["PUT"]), try policy("b-all", []),
      try policy("c-off", ["POST"], .off), try policy("d-off", [], .off), try policy("d-lock", ["LOCK"]),
      try policy("e-off", ["POST"], .off), try policy("e-delete", ["DELETE"]), try policy("f-lock", ["LOCK"]),
      try policy("h-off", ["DELETE"], .off, override: true), try policy("h-put", ["PUT"], override: true),
      try policy("h-post", ["POST", "PATCH"], override: true), try policy("h-lock", ["LOCK"]),
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
    #expect(overridden.route?.policy.name == "a-post")
    #expect(try choice("POST", override: "PUT").method == ByteBuffer(string: "POST"))
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

  /// The fields that name one other method, and the methods of a query and of a form.
  private static let namings: [([(String, String)], String?, [String])] =
    overrides.map { ([($0, "put")], nil, []) } + [
      ([], "_method=put", []), ([], "a=1&%5Fmethod=PUT", []), ([], nil, ["PUT"]),
      ([("X-Method", "Put"), ("X-HTTP-Method", "PUT")], "_method=put", []),
    ]

  private func choice(
    _ method: String, _ path: String, by naming: ([(String, String)], String?, [String])
  ) throws -> RouteTable.Choice {
    var head = try MessageHead(method: method, target: path)
    for (name, value) in naming.0 { try head.append(name: name, value: value) }
    return try Self.table().choice(
      for: head, host: ByteBuffer(), path: ByteBuffer(string: path),
      query: naming.1.map { ByteBuffer(string: $0) }, form: .read(naming.2))
  }

  @Test(arguments: [("POST", "/a"), ("GET", "/a"), ("POST", "/b"), ("LOCK", "/h")])
  func `a request that names another method is refused where either is protected`(
    method: String, path: String
  ) throws {
    for naming in Self.namings {
      #expect(throws: Problem.badRequest(.methodOverride)) { try choice(method, path, by: naming) }
    }
  }

  @Test(arguments: [("POST", "/c", "c-off"), ("DELETE", "/a", nil)] as [(String, String, String?)])
  func `a request that names another method passes where nothing is protected`(
    method: String, path: String, name: String?
  ) throws {
    for field in Self.overrides {
      let choice = try choice(method, path, by: ([(field, "PATCH")], nil, []))
      #expect(choice.route?.policy.name == name)
      #expect(choice.method == ByteBuffer(string: method))
    }
  }

  @Test func `a request that names its own method alone is an ordinary one`() throws {
    for naming in [
      ([("X-HTTP-Method", "post")], nil, []), ([("X-HTTP-Method", " , ")], "_method=", []),
      ([], "_method=post", []), ([("X-Method", "POST")], nil, ["POST"]),
    ] as [([(String, String)], String?, [String])] {
      #expect(try choice("POST", "/a", by: naming).route?.policy.name == "a-post")
    }
  }

  @Test(arguments: ["POST", "GET", "PATCH", "DELETE"])
  func `a route that says so takes a request as one of the method that it names`(method: String) throws {
    for naming in Self.namings {
      let choice = try choice(method, "/h", by: naming)
      #expect(choice.route?.policy.name == "h-put")
      #expect(choice.method == ByteBuffer(string: "PUT"))
    }
  }

  @Test func `no request leaves protection by naming another method, whatever its route says`() throws {
    for method in ["DELETE", "GET", "X", "LOCK"] {
      #expect(throws: Problem.badRequest(.methodOverride)) {
        try choice("POST", "/h", by: ([("X-HTTP-Method", method)], nil, []))
      }
    }
  }

  @Test func `contradicting or repeated methods are refused where one may be protected`() throws {
    let refused: [([(String, String)], String?, [String])] = [
      ([("X-HTTP-Method", "PUT"), ("X-HTTP-Method-Override", "PATCH")], nil, []),
      ([("X-HTTP-Method", "GET, PUT")], nil, []), ([("X-HTTP-Method", "PUT, PUT")], nil, []),
      ([("X-HTTP-Method", "POST"), ("X-Method", "PUT")], nil, []),
      ([("X-HTTP-Verb", "PUT"), ("X-HTTP-Verb", "put")], nil, []),
      ([("X-HTTP-Method", "PUT")], "_method=POST", []), ([("X-HTTP-Method", "POST")], nil, ["PUT"]),
      ([], "_method=PUT&_method=PUT", []), ([], "_method=PUT", ["PUT"]), ([], "_method=POST", ["PUT"]),
      ([], nil, ["", ""]),
    ]
    for naming in refused {
      for path in ["/a", "/h", "/a.json"] {
        #expect(throws: Problem.badRequest(.methodOverride)) { try choice("POST", path, by: naming) }
        #expect(throws: Problem.badRequest(.methodOverride)) { try choice("GET", path, by: naming) }
      }
      #expect(try choice("POST", "/c", by: naming).route?.policy.name == "c-off")
    }
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
