import Idempotency
import Testing

struct RouteTableTests {
  private let table: RouteTable

  init() throws {
    let upstream = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))
    let orders = try PathPattern(parsing: "/v1/orders")
    let matches = [
      RouteMatch(methods: ["POST", "PUT"], path: orders, host: "Api.example.com"),
      RouteMatch(methods: ["POST"], path: orders),
      RouteMatch(path: try PathPattern(parsing: "/v1/**")),
      RouteMatch(methods: ["GET"]),
    ]
    table = RouteTable(
      matches.enumerated().map { RoutePolicy(name: "r\($0)", match: $1, upstream: upstream) })
  }

  private func route(_ method: String, _ host: String, _ path: String) -> Route? {
    Array(method.utf8).withUnsafeBytes { method in
      Array(host.utf8).withUnsafeBytes { host in
        Array(path.utf8).withUnsafeBytes { table.route(method: method, host: host, path: $0) }
      }
    }
  }

  @Test(arguments: [
    ("POST", "api.example.com", "/v1/orders", 0), ("PUT", "API.EXAMPLE.COM", "/v1/orders", 0),
    ("POST", "", "/v1/orders", 1), ("POST", "api.example.co", "/v1/orders", 1),
    ("PUT", "other", "/v1/orders", 2), ("post", "api.example.com", "/v1/orders", 2), ("GET", "x", "/v1/", 2),
    ("GET", "x", "/", 3), ("GET", "x", "*", 3),
  ]) func `a request meets the first route that fits`(method: String, host: String, path: String, index: Int)
  {
    let route = route(method, host, path)
    #expect(route?.index == index)
    #expect(route?.policy.name == "r\(index)")
  }

  @Test func `a request that fits none meets none`() {
    #expect(route("DELETE", "x", "/") == nil)
    #expect(route("", "", "") == nil)
  }

  @Test func `a route is the same object for all of its requests`() {
    #expect(route("GET", "x", "/") === route("GET", "y", "/z"))
    #expect(table.routes.map(\.index) == [0, 1, 2, 3])
  }
}
