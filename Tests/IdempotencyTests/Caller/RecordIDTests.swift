import Idempotency
import NIOCore
import Testing
import Wire

struct RecordIDTests {
  /// One identity as a test writes it down.
  private struct Identity {
    var token = "Bearer a"
    var upstream = "orders"
    var host = "api.example.com"
    var method = "POST"
    var path = "/v1/orders"
    var route: String?
    var key = "key"

    func id(under identityKey: IdentityKey? = nil) throws -> RecordID {
      let request = Request(("Authorization", token), ("Idempotency-Key", key))
      return RecordID.make(
        caller: try CallerPolicy(parts: [.header("authorization")]).caller(
          head: request.head, peer: CallerPeer(address: nil)),
        upstream: upstream, host: try RequestHost(ByteBuffer(string: host)),
        method: ByteBuffer(string: method),
        place: route.map { .route($0) } ?? .path(ByteBuffer(string: path)),
        key: try #require(try request.wholeKey(KeyPolicy())),
        under: identityKey)
    }
  }

  @Test func `the same identity has the same id in every process`() throws {
    #expect(try Identity().id() == Identity().id())
    // Written down once: records of running systems are found under it.
    #expect(try Identity().id().text == "6NovxVtYioAAC0oEbvHiRnCcLFByoK3BbkxTluKadho")
  }

  @Test func `a secret makes other ids, always the same`() throws {
    let key = IdentityKey("0123456789abcdef")
    #expect(try Identity().id(under: key) == Identity().id(under: IdentityKey("0123456789abcdef")))
    #expect(try Identity().id(under: key) != Identity().id())
    #expect(try Identity().id(under: key) != Identity().id(under: IdentityKey("0123456789abcdeg")))
    #expect(try Identity().id(under: key) != Identity(key: "Key").id(under: key))
  }

  @Test func `every part of it makes another id`() throws {
    let identities = [
      Identity(), Identity(token: "Bearer b"), Identity(upstream: "order"), Identity(host: "example.com"),
      Identity(method: "PUT"), Identity(method: "post"), Identity(path: "/v1/orders/"),
      Identity(path: "/V1/orders"),
      Identity(route: "/v1/orders"), Identity(route: "create"), Identity(key: "Key"),
      Identity(host: "", path: "api.example.com/v1/orders"),
      Identity(upstream: "ordersapi", host: ".example.com"),
      Identity(method: "POST/", path: "v1/orders"),
    ]
    #expect(try Set(identities.map { try $0.id() }).count == identities.count)
  }

  @Test func `all hosts of a route have one id where its keys count at any`() throws {
    func id(_ host: String, _ change: @escaping (inout RoutePolicy) -> Void = { _ in }) throws -> RecordID {
      let request = Request(("Authorization", "a"), ("Idempotency-Key", "k"))
      return Route.sample(change).recordID(
        caller: try CallerPolicy(parts: [.header("authorization")]).caller(
          head: request.head, peer: CallerPeer(address: nil)),
        host: try RequestHost(ByteBuffer(string: host)), method: ByteBuffer(string: "POST"),
        path: ByteBuffer(string: "/a"), key: try #require(try request.wholeKey(KeyPolicy())), under: nil)
    }
    let any = { (policy: inout RoutePolicy) in policy.endpointHost = .any }
    #expect(try id("a.example") != id("b.example"))
    #expect(try id("a.example", any) == id("b.example:8080", any))
    // As those of requests to an address.
    #expect(try id("a.example", any) == id("192.0.2.1"))
    let route = { (policy: inout RoutePolicy) in (policy.endpoint, policy.endpointHost) = (.route, .any) }
    #expect(
      try id("a.example", route) == id("b.example", route) && id("a.example", route) != id("a.example", any))
  }

  @Test func `a shadowed route's records have ids of their own`() throws {
    let id = try Identity().id()
    #expect(id.shadowed == id.shadowed)
    #expect(id.shadowed != id)
    #expect(try Identity(key: "Key").id().shadowed != id.shadowed)
  }

  @Test(arguments: [
    "API.example.com", "api.example.com:8080", "Api.Example.Com:443", "api.example.com:",
    "api.example.com.:80",
  ])
  func `letter case, port and last dot of the host make no difference`(host: String) throws {
    #expect(try Identity(host: host).id() == Identity().id())
  }

  @Test(arguments: ["127.0.0.1", "127.0.0.1:8080", "[::1]", "[0:0::1]:8080", "10.1.2.3"])
  func `an IP literal counts as no host`(host: String) throws {
    #expect(try Identity(host: host).id() == Identity(host: "").id())
  }

  @Test(arguments: ["1.2.3", "1.2.3.4.5", "1.2.3.4a", "a.2.3.4", "1.2..4", "1234.1.1.1", "localhost"])
  func `a text that only resembles an address is a host`(host: String) throws {
    #expect(try Identity(host: host).id() != Identity(host: "").id())
  }

  @Test func `with the route's name the path makes no difference`() throws {
    #expect(try Identity(path: "/a", route: "r").id() == Identity(path: "/b", route: "r").id())
  }

  @Test func `the text is read back`() throws {
    let id = try Identity().id()
    #expect(id.text.utf8.count == 43)
    #expect(RecordID(text: id.text) == id)
    #expect(RecordID(text: id.text + "A") == nil)
    #expect(RecordID(text: "") == nil)
  }
}
