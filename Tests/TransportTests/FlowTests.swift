import Glibc
import Idempotency
import NIOCore
import Platform
import TestSupport
import Testing
import Wire

@testable import Transport

/// Connections, their reuse, and the flow of bodies.
struct FlowTests {
  private static func echo(_ connection: RawConnection) throws {
    while true {
      let request = try connection.readRequest()
      let target = request.split(separator: " ")[1]
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(target.utf8.count)\r\n\r\n\(target)")
    }
  }

  @Test func `connections are kept and reused`() async throws {
    let server = try RawServer(script: Self.echo)
    try await Harness.run { harness async throws in
      for index in 0..<20 {
        let response = try await harness.upstream.begin(.to(server, "GET", "/\(index)")).finish()
        #expect(response == ReceivedResponse(status: 200, body: "/\(index)"))
      }
      #expect(server.tally.connections == 1 && harness.upstream.counters.connects == 1)
    }
  }

  @Test func `two hundred concurrent exchanges get their own responses`() async throws {
    let gate = ScriptGate()
    let server = try RawServer { connection in
      let target = try connection.readRequest().split(separator: " ")[1]
      gate.pass()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(target.utf8.count)\r\n\r\n\(target)")
    }
    try await Harness.run { harness async throws in
      var upstream = UpstreamSettings.loopback(server.port)
      upstream.maxConnections = 300
      let exchanges = (0..<200).map { [upstream] in harness.upstream.begin(.to(upstream, "GET", "/\($0)")) }
      await server.reached { $0.requests == 200 }
      for _ in exchanges { gate.open() }
      for (index, exchange) in exchanges.enumerated() {
        #expect(try await exchange.finish().body == "/\(index)")
      }
    }
  }

  @Test func `no more connections are opened than allowed`() async throws {
    let server = try RawServer(script: Self.echo)
    try await Harness.run { harness async throws in
      var upstream = UpstreamSettings.loopback(server.port)
      upstream.maxConnections = 3
      let exchanges = (0..<50).map { [upstream] _ in harness.upstream.begin(.to(upstream)) }
      for exchange in exchanges { #expect(try await exchange.finish().status == 200) }
      #expect(server.tally.connections <= 3 && server.tally.requests == 50)
    }
  }

  @Test(arguments: [2, 3, 4, 8])
  func `a quarter of the connections, and one at least, is left to protected requests`(
    limit: Int
  ) async throws {
    let unprotected = limit - max(1, limit / 4)
    let server = try RawServer { connection in
      while try connection.readRequest().hasPrefix("POST") {
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      }
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      var upstream = UpstreamSettings.loopback(server.port)
      upstream.maxConnections = limit
      let silent = (0..<limit).map { [upstream] _ in harness.upstream.begin(.to(upstream)) }
      await server.reached { $0.requests == unprotected }
      for number in 1...2 {
        let keyed = harness.upstream.begin(.to(upstream, "POST", permit: .fresh()))
        #expect(try await keyed.finish().status == 200)
        #expect(server.tally.requests == unprotected + number)
      }
      // The end of one makes room for one that waits.
      silent[0].close()
      await server.reached { $0.requests == unprotected + 3 }
      for exchange in silent { exchange.close() }
    }
  }

  @Test func `a backend may be silent for no longer than the limit`() async throws {
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server))
      _ = try await exchange.head(within: nil)
      #expect(try await exchange.read(within: nil).map { String(buffer: $0) } == "abc")
      exchange.limitSilence(to: 20)
      await #expect(throws: UpstreamFailure.timedOut) { try await exchange.read(within: .seconds(10)) }
      await #expect(throws: UpstreamFailure.timedOut) { try await exchange.read(within: nil) }
      exchange.close()
    }
  }

  @Test func `an idle connection past idle_timeout is not reused`() async throws {
    let server = try RawServer(script: Self.echo)
    try await Harness.run { harness async throws in
      var upstream = UpstreamSettings.loopback(server.port)
      upstream.idleTimeout = .seconds(1)
      _ = try await harness.upstream.begin(.to(upstream)).finish()
      // Longer than the limit.
      await harness.context.sleep(milliseconds: 1050)
      _ = try await harness.upstream.begin(.to(upstream)).finish()
      #expect(server.tally.connections == 2)
    }
  }

  /// Responds to a request with the terms of its target, such as `/timeout=5,max=2`. Returns the target.
  private static func keep(_ connection: RawConnection) throws -> String {
    let target = try connection.readRequest().split(separator: " ")[1]
    try connection.write(
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: \(target.dropFirst())\r\n\r\n")
    return String(target)
  }

  @Test func `an idle connection is closed after half of the time for which its backend keeps it`()
    async throws
  {
    let ended = Watched<[String]>([])
    let server = try RawServer { connection in
      let target = try Self.keep(connection)
      connection.readToEnd()
      ended.withValue { $0.append(target) }
    }
    try await Harness.run { harness async throws in
      var upstream = UpstreamSettings.loopback(server.port)
      upstream.idleTimeout = .seconds(600)
      // Both at once, so that each has a connection of its own. The first one's timer runs when the second one rests.
      let exchanges = ["/timeout=1000", "/timeout=1"].map { [upstream] target in
        harness.upstream.begin(.to(upstream, "POST", target, permit: .fresh()))
      }
      for exchange in exchanges { #expect(try await exchange.finish().status == 200) }
      #expect(try await ended.until("the end of a connection") { $0.isEmpty ? nil : $0 } == ["/timeout=1"])
    }
  }

  @Test func `a connection on which its backend takes no more requests is not reused`() async throws {
    let server = try RawServer { connection in
      while true { _ = try Self.keep(connection) }
    }
    try await Harness.run { harness async throws in
      for connections in [1, 1, 1, 2] {
        let exchange = harness.upstream.begin(.to(server, "POST", "/timeout=9,max=2", permit: .fresh()))
        #expect(try await exchange.finish().status == 200)
        #expect(server.tally.connections == connections)
      }
    }
  }

  @Test func `a connection that the backend closed is not reused`() async throws {
    let ended = Watched(0)
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      connection.halfClose()
      connection.readToEnd()
      ended.withValue { $0 += 1 }
    }
    try await Harness.run { harness async throws in
      for number in 1...10 {
        #expect(
          try await harness.upstream.begin(.to(server, "POST", permit: .fresh())).finish().status == 200)
        try await ended.until("the end of connection \(number)") { $0 == number ? true : nil }
      }
      #expect(server.tally.connections == 10 && server.tally.requests == 10)
    }
  }

  @Test func `a backend on a unix socket is reached`() async throws {
    let path = "/tmp/semel-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).sock"
    let server = try RawServer(.unix(path: path), script: Self.echo)
    defer { unlink(path) }
    try await Harness.run { harness async throws in
      let upstream = UpstreamSettings(name: "u", address: .unix(path: path))
      #expect(try await harness.upstream.begin(.to(upstream, "GET", "/u")).finish().body == "/u")
    }
    #expect(server.tally.received == ["GET /u HTTP/1.1\r\nHost: test\r\n\r\n"])
  }

  @Test func `a backend that is not read from stalls`() async throws {
    let size = 64 << 20
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n")
      let piece = [UInt8](repeating: 0x61, count: 1 << 16)
      for _ in 0..<(size >> 16) { try connection.write(piece) }
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server))
      _ = try await exchange.head(within: nil)
      // The kernel's buffers and ours fill up, and then nothing moves any more.
      var before = -1
      while before != server.tally.written {
        before = server.tally.written
        // No event announces that nothing happens.
        await harness.context.sleep(milliseconds: 100)
      }
      #expect(before < size / 2)
      #expect(exchange.body.readableBytes <= HTTPExchange.highWater + (1 << 16))
      var count = 0
      while let piece = try await exchange.read(within: .seconds(10)) { count += piece.readableBytes }
      #expect(count == size)
      exchange.close()
    }
  }

  @Test func `a body beyond the limit remains to be read`() async throws {
    let size = 1 << 20
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(String(size, radix: 16))\r\n")
      try connection.write([UInt8](repeating: 0x61, count: size))
      try connection.write("\r\n0\r\nX-End: 1\r\n\r\n")
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server))
      _ = try await exchange.head(within: nil)
      for limit in [1000, 400_000] {
        guard case .tooLarge = try await exchange.collect(upTo: limit, within: nil) else {
          Issue.record("\(size) bytes passed as at most \(limit)")
          return
        }
      }
      var count = 0
      while let piece = try await exchange.read(within: .seconds(10)) { count += piece.readableBytes }
      #expect(count == size && String(buffer: exchange.trailers) == "X-End: 1\r\n")
      exchange.close()
    }
  }

  @Test func `a response that arrives after the time-out is collected`() async throws {
    let gate = ScriptGate()
    let server = try RawServer { connection in
      try connection.readRequest()
      gate.pass()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nla")
      gate.pass()
      try connection.write("te")
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server, "POST", permit: .fresh()))
      await #expect(throws: UpstreamFailure.timedOut) { try await exchange.head(within: 20) }
      gate.open()
      let head = try await exchange.head(within: .seconds(10))
      #expect(head.head.status == 200)
      await #expect(throws: UpstreamFailure.timedOut) { try await exchange.collect(upTo: 100, within: 20) }
      gate.open()
      #expect(try await exchange.finish() == ReceivedResponse(status: 200, body: "late"))
    }
  }

  @Test func `closing an exchange under way cuts its connection`() async throws {
    let ended = ScriptGate()
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
      connection.readToEnd()
      ended.open()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server))
      _ = try await exchange.head(within: nil)
      exchange.close()
      ended.pass()
      #expect(await exchange.failure()?.isResponseLost == true)
    }
  }

  @Test func `after shutdown exchanges under way are cut, and none begins`() async throws {
    let server = try RawServer { connection in
      try connection.readRequest()
      connection.readToEnd()
    }
    let dead = try DeadPort.refusing()
    try await Harness.run { harness async throws in
      let running = harness.upstream.begin(.to(server))
      let connecting = harness.upstream.begin(.to(.loopback(dead.port)))
      await server.reached { $0.requests == 1 }
      harness.upstream.shutdown()
      #expect(await running.failure()?.isResponseLost == true)
      #expect(await connecting.failure()?.isNotSent == true)
      #expect(await harness.upstream.begin(.to(server)).failure()?.isNotSent == true)
    }
  }

  @Test func `an exchange may be closed at any moment`() async throws {
    let server = try RawServer(script: Self.echo)
    try await Harness.run { harness async throws in
      let body = RequestBody.whole(ByteBuffer(repeating: 0x61, count: 4 << 20))
      for pause in 0..<20 {
        let exchange = harness.upstream.begin(.to(server, "POST", body: body))
        // Another moment each time.
        if pause > 0 { await harness.context.sleep(milliseconds: Int64(pause % 4)) }
        exchange.close()
        exchange.close()
      }
      #expect(try await harness.upstream.begin(.to(server, "GET", "/after")).finish().body == "/after")
    }
  }
}
