import TestSupport
import Testing

/// Listeners behind a load balancer.
struct ProxyProtocolTests {
  private static func configuration(_ isExpected: Bool = true) -> (Configuration, SemelProcess.Ports) {
    let ports = SemelProcess.Ports()
    let listen = "[{address: '127.0.0.1:\(ports.proxy)', proxy_protocol: \(isExpected)}]"
    return (Configuration(top: ["listen": listen], route: ["caller": "{parts: [address]}"]), ports)
  }

  private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]

  private static func binary(_ address: [UInt8]) -> [UInt8] {
    signature + [0x21, 0x11, 0, 12] + address + [127, 0, 0, 1, 1, 2, 3, 4]
  }

  @Test func `a client whom the balancer does not know is no caller by address`() async throws {
    let (known, ports) = Self.configuration()
    var configuration = known
    // A word about an unknown client is not believed either.
    configuration.top["trusted_proxies"] = "[unix, 127.0.0.1]"
    try await Rig.run(configuration) { [configuration] rig in
      func order(_ header: [UInt8]) async throws -> ReceivedResponse {
        let client = try await RawClient(port: ports.proxy)
        let text = Rig.orderText("k", [("X-Forwarded-For", "203.0.113.9")])
        try await client.send(header + Array(text.utf8))
        return try await client.response()
      }
      let unspecified = Self.signature + [0x21, 0x00, 0, 0]
      let local = Self.signature + [0x20, 0x00, 0, 0]
      // Some balancers send their clients' requests on connections that they call their own, too.
      for header in [Array("PROXY UNKNOWN\r\n".utf8), unspecified, local] {
        expectRefused(try await order(header), 401, "caller_unknown", retryable: false)
      }
      #expect(rig.backend.requests.isEmpty)
      // A health check, which no route protects, is served.
      let check = try await RawClient(port: ports.proxy)
      try await check.send(local + Array("GET /health HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
      #expect(try await check.response().status == 201)
      try await rig.reload(
        rig.text(of: configuration).replacing(
          "{parts: [address]}", with: "{parts: [address], anonymous: allow}"))
      expectExecuted(try await order(unspecified))
      expectReplayed(try await order(local), 201)
      #expect(rig.backend.requests.count == 2)
      #expect(rig.backend.requests.allSatisfy { $0["X-Forwarded-For"] == nil })
    }
  }

  @Test func `the client's address is the one in the PROXY header`() async throws {
    let (configuration, ports) = Self.configuration()
    try await Rig.run(configuration) { rig in
      func order(_ header: [UInt8]) async throws -> ReceivedResponse {
        let client = try await RawClient(port: ports.proxy)
        try await client.send(header + Array(Rig.orderText("k").utf8))
        return try await client.response()
      }
      let line = Array("PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n".utf8)
      expectExecuted(try await order(line))
      expectReplayed(try await order(Self.binary([192, 0, 2, 1])), 201)
      // Another address is another caller.
      expectExecuted(try await order(Self.binary([192, 0, 2, 2])))
      #expect(rig.backend.requests.map { $0["X-Forwarded-For"] } == ["192.0.2.1", "192.0.2.2"])
      let curl = try ManagedProcess([
        "curl", "--silent", "--haproxy-protocol", "--header", "Idempotency-Key: c", "--json", "{}",
        "http://127.0.0.1:\(ports.proxy)/v1/orders",
      ])
      try await curl.exit()
      #expect(rig.backend.requests.last?["X-Forwarded-For"] == "127.0.0.1")
      // A header in pieces, and HTTP/2 behind it.
      let pieces = try await RawClient(port: ports.proxy)
      for byte in line { try await pieces.send([byte]) }
      try await pieces.send(Rig.orderText("k"))
      expectReplayed(try await pieces.response(), 201)
    }
  }

  @Test(arguments: [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PROXY TCP4 nobody nowhere 1 2\r\n", "\r\n\r\n\0\r\nQUIX",
  ])
  func `a connection that does not begin with a PROXY header is closed`(text: String) async throws {
    let (configuration, ports) = Self.configuration()
    try await Rig.run(configuration) { _ in
      let client = try await RawClient(port: ports.proxy)
      try await client.send(text)
      #expect(try await client.closedByPeer().isEmpty)
    }
  }

  @Test func `a PROXY header on another listener is a bad request`() async throws {
    let (configuration, ports) = Self.configuration(false)
    try await Rig.run(configuration) { _ in
      let client = try await RawClient(port: ports.proxy)
      try await client.send("PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n" + Rig.orderText("k"))
      #expect(try await client.response().status == 400)
      let other = try await RawClient(port: ports.proxy)
      try await other.send(Self.binary([192, 0, 2, 1]) + Array(Rig.orderText("k").utf8))
      #expect(try await other.response().status == 400)
    }
  }
}
