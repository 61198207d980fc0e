import Foundation
import TestSupport
import Testing

/// The bounds of the admin listener's connections, each of which is a descriptor of the process.
struct AdminConnectionTests {
  private static let probe = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"

  private func descriptors(of rig: Rig) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(rig.semel.process.id)/fd").count
  }

  @Test func `silent connections take sixty-four descriptors at most, and no client's place`() async throws {
    try await Rig.run { rig in
      let before = try descriptors(of: rig)
      var clients: [RawClient] = []
      for _ in 0..<200 { clients.append(try await RawClient(port: rig.semel.ports.admin)) }
      let deadline = ContinuousClock.now + .seconds(8)
      while clients.count(where: { $0.inbox.value.isClosed }) < 200 - 64 {
        guard ContinuousClock.now < deadline else { throw TestFailure("too many connections are open") }
        try await Task.sleep(for: .milliseconds(10))
      }
      #expect(clients.contains { !$0.inbox.value.isClosed })
      #expect(try descriptors(of: rig) <= before + 64 + 16)
      // A newcomer with a request takes the place of one without.
      let operatorsOwn = try await RawClient(port: rig.semel.ports.admin)
      try await operatorsOwn.send(Self.probe)
      #expect(try await operatorsOwn.response(to: "GET").status == 200)
      expectExecuted(try await rig.order("k"))
      // The silent ones are closed, too, and leave their places to others.
      for client in clients { try await client.closedByPeer() }
      try await rig.semel.page("/livez", becomes: 200)
    }
  }

  @Test func `of many requests that a client sends ahead eight are responded to, and the connection ends`()
    async throws
  {
    try await Rig.run { rig in
      let metrics = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
      let client = try await RawClient(port: rig.semel.ports.admin)
      try await client.send(String(repeating: metrics, count: 500))
      for _ in 0..<8 { #expect(try await client.response(to: "GET").status == 200) }
      try await client.closedByPeer()
      #expect(client.inbox.value.bytes.count == 0)
    }
  }

  @Test func `a connection without a complete request ends after ten seconds`() async throws {
    try await Rig.run { rig in
      let port = rig.semel.ports.admin
      let head =
        "POST /v1/records/find HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        + "Content-Length: 1000\r\n\r\n"
      let kept = try await RawClient(port: port)
      try await kept.send(Self.probe)
      #expect(try await kept.response(to: "GET").status == 200)
      var stuck: [RawClient] = []
      for bytes in ["", "GET /livez HTTP/1.1\r\nHost: local", head, Self.probe + head] {
        let client = try await RawClient(port: port)
        if !bytes.isEmpty { try await client.send(bytes) }
        stuck.append(client)
      }
      let slow = try await RawClient(port: port)
      try await slow.send(head)
      let drip = Task {
        while !Task.isCancelled {
          try await slow.send(" ")
          try await Task.sleep(for: .milliseconds(500))
        }
      }
      for client in stuck + [slow] { try await client.closedByPeer(within: .seconds(25)) }
      drip.cancel()
      // One between two requests has more time.
      try await kept.send(Self.probe)
      #expect(try await kept.response(to: "GET").status == 200)
    }
  }

  @Test(arguments: [
    "GET /livez HTTP/1.0\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: Close\r\n\r\n",
  ])
  func `a connection that its client does not keep ends with the response`(request: String) async throws {
    try await Rig.run { rig in
      let client = try await RawClient(port: rig.semel.ports.admin)
      try await client.send(request)
      let text = String(decoding: try await client.closedByPeer(within: .seconds(8)), as: UTF8.self)
      #expect(text.contains(" 200 ") && text.hasSuffix("ok\n"), "\(text)")
    }
  }

  @Test func `a client of HTTP 1_0 may keep its connection`() async throws {
    try await Rig.run { rig in
      let client = try await RawClient(port: rig.semel.ports.admin)
      for _ in 0..<2 {
        try await client.send("GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        #expect(try await client.response(to: "GET").status == 200)
      }
    }
  }

  @Test func `the time of a response is not counted`() async throws {
    try await Rig.run { rig in
      let client = try await RawClient(port: rig.semel.ports.admin)
      let watch = "GET /v1/requests?wait=8 HTTP/1.1\r\nHost: localhost\r\n\r\n"
      try await client.send(watch + watch)
      for _ in 0..<2 { #expect(try await client.response(to: "GET").status == 200) }
      try await client.send(Self.probe)
      #expect(try await client.response(to: "GET").status == 200)
    }
  }
}
