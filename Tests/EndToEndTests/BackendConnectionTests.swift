import TestSupport
import Testing

/// Connections to backends that are kept, and backends that do not keep them.
struct BackendConnectionTests {
  @Test func `an idle connection is dropped before a backend would do it`() async throws {
    let ended = Watched(0)
    let backend = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      connection.readToEnd()
      ended.withValue { $0 += 1 }
    }
    let configuration = Configuration(
      upstream: ["url": "'http://127.0.0.1:\(backend.port)'", "idle_timeout": "6s"])
    try await Rig.run(configuration) { rig in
      let start = ContinuousClock.now
      expectExecuted(try await rig.order("k"), 200)
      _ = try await ended.until("the idle connection's end", within: .seconds(40)) { $0 > 0 ? true : nil }
      // Without the setting it would be four seconds.
      let duration = ContinuousClock.now - start
      #expect(duration > .milliseconds(5900), "\(duration)")
      expectExecuted(try await rig.order("l"), 200)
      #expect(backend.tally.connections == 2)
    }
  }

  @Test func `a connection that its backend keeps for a second is dropped before, and not used again`()
    async throws
  {
    let ended = Watched(0)
    let backend = try RawServer { connection in
      try connection.readRequest()
      try connection.write(
        "HTTP/1.1 201 Created\r\nContent-Length: 0\r\nKeep-Alive: timeout=1, max=100\r\n\r\n")
      connection.readToEnd()
      ended.withValue { $0 += 1 }
    }
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["url": "'http://127.0.0.1:\(backend.port)'", "idle_timeout": "10m"])
    try await Rig.run(configuration) { rig in
      for number in 1...2 {
        expectExecuted(try await rig.order("k\(number)"))
        _ = try await ended.until("the end of connection \(number)") { $0 == number ? true : nil }
      }
      #expect(backend.tally.connections == 2 && backend.tally.requests == 2)
    }
  }

  @Test(arguments: ["off", "auto"])
  func `an idle connection under TLS is not used again`(http2: String) async throws {
    var backend = try await SecureBackend()
    backend.http2 = http2
    let configuration = Configuration(top: ["workers": "1"], upstream: ["idle_timeout": "2s"])
    try await backend.run(nil, configuration) { rig in
      expectExecuted(try await rig.order("k"))
      // Longer than the limit.
      try await Task.sleep(for: .milliseconds(2100))
      expectExecuted(try await rig.order("l"))
      #expect(Set(rig.backend.requests.map { $0["X-Connection"] }).count == 2)
    }
  }

  /// Responds to every request and ends the connection in the same segment, without Connection: close.
  ///
  /// - Parameters:
  ///   - ended: how many of them it has ended.
  ///   - torn: how many of these ends left in a segment of their own, since the machine was busy.
  private static func hasty(
    _ address: RawServer.Address, ended: Watched<Int> = Watched(0), torn: Watched<Int> = Watched(0)
  ) throws -> RawServer {
    try RawServer(address) { connection in
      try connection.readRequest()
      if try !connection.writeLast("HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\ndone") {
        torn.withValue { $0 += 1 }
      }
      ended.withValue { $0 += 1 }
      connection.readToEnd()
    }
  }

  /// Nobody can see an end that has yet to come: a request that meets one of these may have been lost.
  private static func expectKept(_ statuses: [Int: Int], of count: Int, torn: Watched<Int>) {
    #expect(statuses[201, default: 0] >= count - torn.value, "\(statuses)")
  }

  private static let rounds = 500

  @Test(arguments: [false, true])
  func `a backend that ends each connection without Connection: close leaves nothing unknown`(isUnix: Bool)
    async throws
  {
    let directory = TemporaryDirectory()
    let path = directory.file("backend")
    let (ended, torn) = (Watched(0), Watched(0))
    let backend = try Self.hasty(isUnix ? .unix(path: path) : .loopback, ended: ended, torn: torn)
    let url = isUnix ? "'unix:\(path)'" : "'http://127.0.0.1:\(backend.port)'"
    try await Rig.run(Configuration(upstream: ["url": url])) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      var statuses: [Int: Int] = [:]
      for number in 0..<Self.rounds {
        try await client.send(Rig.orderText("k\(number)"))
        statuses[try await client.response().status, default: 0] += 1
        // A unix socket cannot carry a response and the end in one, and nobody can see an end that has yet to come.
        if isUnix { _ = try await ended.until("the connection's end") { $0 > number ? true : nil } }
      }
      if isUnix { #expect(statuses == [201: Self.rounds]) }
      Self.expectKept(statuses, of: Self.rounds, torn: torn)
      #expect(backend.tally.requests == Self.rounds || torn.value > 0)
    }
    withExtendedLifetime(directory) {}
  }

  /// On a unix socket the end may come after the next request was sent, which nobody can help.
  @Test func `requests that are sent ahead of the previous response leave nothing unknown`() async throws {
    let torn = Watched(0)
    let backend = try Self.hasty(.loopback, torn: torn)
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      // Requests without a key: the next one begins in the turn in which the one before has ended.
      try await client.send((0..<200).map { Rig.orderText(nil, path: "/open/\($0)") }.joined())
      var statuses: [Int: Int] = [:]
      for _ in 0..<200 { statuses[try await client.response().status, default: 0] += 1 }
      Self.expectKept(statuses, of: 200, torn: torn)
    }
  }
}
