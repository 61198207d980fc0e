import Idempotency
import NIOCore
import Testing
import Wire

/// The method by which a request meets its route.
struct RouteChoiceTests {
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
  ) throws -> (name: String?, method: String) {
    var head = try MessageHead(method: method, target: path)
    for (name, value) in fields { try head.append(name: name, value: value) }
    let choice = try Self.table().choice(for: head, host: ByteBuffer(), path: ByteBuffer(string: path))
    return (choice.route?.policy.name, String(buffer: choice.method))
  }

  @Test(arguments: [
    ("post", "/a"), ("Put", "/a"), ("post", "/b"), ("deleTE", "/b"), ("post", "/c"), ("lock", "/f"),
  ])
  func `a route's method in another case is refused`(method: String, path: String) {
    #expect(throws: Problem.badRequest(.methodCase)) { try choice(method, path) }
  }

  @Test(arguments: [
    ("get", "/a"), ("get", "/c"), ("post", "/d"), ("post", "/x"), ("LOCK", "/a"), ("PURGE", "/a"),
  ])
  func `another method passes`(method: String, path: String) throws {
    #expect(try choice(method, path).name == (path == "/d" ? "d-off" : nil))
  }

  @Test(arguments: [
    // Protected where either method is; the policy of the overriding one goes first.
    ("POST", "/a", "PUT", "a-put", "POST PUT"), ("PUT", "/a", "post", "a-post", "PUT POST"),
    ("POST", "/a", "GET", "a-post", "POST GET"), ("GET", "/a", "POST", "a-post", "GET POST"),
    ("POST", "/e", "DELETE", "e-delete", "POST DELETE"), ("GET", "/f", "lock", "f-lock", "GET LOCK"),
    ("POST", "/a", "post", "a-post", "POST"), ("POST", "/a", " , ", "a-post", "POST"),
    ("POST", "/c", "PUT", "c-off", "POST"), ("GET", "/x", "POST", nil, "GET"),
  ]) func `an overriding method counts as well`(
    method: String, path: String, overriding: String, name: String?, identity: String
  ) throws {
    for field in ["X-HTTP-Method-Override", "X-HTTP-Method", "x-method-override"] {
      let choice = try choice(method, path, [(field, overriding)])
      #expect(choice.name == name)
      #expect(choice.method == identity)
    }
  }

  @Test func `several overriding methods are refused where one may be protected`() throws {
    let fields = [("X-HTTP-Method", "PUT"), ("X-HTTP-Method-Override", "PATCH")]
    #expect(throws: Problem.badRequest(.methodOverrides)) { try choice("GET", "/a", fields) }
    #expect(throws: Problem.badRequest(.methodOverrides)) {
      try choice("POST", "/a", [("X-HTTP-Method", "GET, PUT")])
    }
    #expect(try choice("POST", "/c", fields).name == "c-off")
    let same = [("X-HTTP-Method", "PUT"), ("X-HTTP-Method-Override", "put, POST")]
    #expect(try choice("POST", "/a", same).method == "POST PUT")
  }
}
