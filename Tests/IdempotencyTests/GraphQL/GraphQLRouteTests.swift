import NIOCore
import Testing
import Wire

@testable import Idempotency

/// Routes that match by the GraphQL operation.
struct GraphQLRouteTests {
  private static func policy(_ name: String, _ match: RouteMatch) -> RoutePolicy {
    var policy = RoutePolicy(
      name: name, match: match, upstream: UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1)))
    policy.caller = CallerPolicy(parts: [.address])
    policy.methodOverride = true
    return policy
  }

  private static func table() throws -> RouteTable {
    let path = try PathPattern(parsing: "/graphql")
    return RouteTable([
      policy("mutations", RouteMatch(methods: ["POST"], path: path, graphql: .mutation)),
      policy("rest", RouteMatch(methods: ["POST"])),
      policy("put", RouteMatch(methods: ["PUT"], path: path, graphql: .mutation)),
    ])
  }

  private func choice(
    _ method: String, _ path: String, _ operation: GraphQLOperation, override: String? = nil
  ) throws -> RouteTable.Choice {
    var head = try MessageHead(method: method, target: path)
    if let override { try head.append(name: "X-HTTP-Method-Override", value: override) }
    return try Self.table().choice(
      for: head, host: ByteBuffer(), path: ByteBuffer(string: path), operation: operation)
  }

  @Test func `the route is undecided until the body is read`() throws {
    let choice = try choice("POST", "/graphql", .unread)
    #expect(choice.isUndecided)
    #expect(choice.route?.policy.name == "mutations")
  }

  private static let meetings: [(String, GraphQLOperation, String?)] = [
    ("POST", .mutation, "mutations"), ("POST", .other, "rest"), ("PUT", .mutation, "put"),
    ("PUT", .other, nil),
  ]

  @Test(arguments: meetings)
  func `mutations meet the route, and others go on to later routes`(
    method: String, operation: GraphQLOperation, name: String?
  ) throws {
    let choice = try choice(method, "/graphql", operation)
    #expect(!choice.isUndecided)
    #expect(choice.route?.policy.name == name)
  }

  @Test func `no body is read for requests that do not fit otherwise`() throws {
    #expect(try !choice("POST", "/other", .unread).isUndecided)
    #expect(try !choice("GET", "/graphql", .unread).isUndecided)
  }

  @Test func `the route of a method that a field names is undecided, too`() throws {
    for own in ["GET", "POST"] {
      #expect(try choice(own, "/graphql", .unread, override: "PUT").isUndecided)
      let mutation = try choice(own, "/graphql", .mutation, override: "PUT")
      #expect(!mutation.isUndecided && mutation.route?.policy.name == "put")
    }
    // The query that PUT is would leave the protection of POST.
    #expect(throws: Problem.badRequest(.methodOverride)) {
      try choice("POST", "/graphql", .other, override: "PUT")
    }
    #expect(try choice("GET", "/graphql", .other, override: "PUT").route == nil)
  }

  @Test func `a route for mutations does not take all requests of another`() throws {
    let path = try PathPattern(parsing: "/graphql")
    let mutations = Self.policy("m", RouteMatch(path: path, graphql: .mutation))
    let all = Self.policy("a", RouteMatch(path: path))
    #expect(!mutations.covers(all))
    #expect(all.covers(mutations))
    #expect(mutations.covers(mutations))
  }

  @Test func `narrowing a route to mutations changes the identity of its other requests`() throws {
    let path = try PathPattern(parsing: "/graphql")
    let mutations = Self.policy("r", RouteMatch(path: path, graphql: .mutation))
    let all = Self.policy("r", RouteMatch(path: path))
    let (narrow, wide) = (RouteIdentity(mutations), RouteIdentity(all))
    let narrowed = IdentityChange.all(from: [wide], to: [narrow])
    #expect(narrowed == [IdentityChange(route: wide, cause: .unmatched)])
    #expect(IdentityChange.all(from: [wide], to: [narrow, wide]).isEmpty)
    #expect(IdentityChange.all(from: [narrow], to: [narrow, wide]).isEmpty)
  }
}
