import Glibc
import Idempotency
import NIOCore
import Platform
import TestSupport
import Testing
import Wire

@testable import Transport

/// Connecting to a backend.
struct ConnectTests {
  private func request(
    _ settings: UpstreamSettings, permit: SendPermit? = nil, body: RequestBody = .none
  ) -> UpstreamRequest {
    UpstreamRequest(
      upstream: settings, method: "POST", target: "/", fields: ByteBuffer(string: "Host: h\r\n"), body: body,
      permit: permit)
  }

  @Test func `a refused connection is retried, and then the request is not sent`() async throws {
    let dead = try DeadPort.refusing()
    try await Harness.run { harness async throws in
      let permit = SendPermit.fresh()
      let failure = await harness.upstream.begin(request(.loopback(dead.port), permit: permit)).failure()
      #expect(failure?.isNotSent == true)
      #expect(harness.upstream.counters == UpstreamCounters(connects: 4, sends: 0, retries: 3))
      #expect(!permit.isSent)
    }
  }

  @Test func `connecting is not retried past the permit`() async throws {
    let dead = try DeadPort.refusing()
    try await Harness.run { harness async throws in
      let permit = SendPermit(requestedAt: BootInstant(nanoseconds: 0), lease: .seconds(1))
      let failure = await harness.upstream.begin(request(.loopback(dead.port), permit: permit)).failure()
      #expect(failure?.isNotSent == true)
      #expect(harness.upstream.counters.connects == 1)
    }
  }

  @Test func `a retry reaches a backend that is back`() async throws {
    let path = "/tmp/semel-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).sock"
    try await Harness.run { harness async throws in
      var settings = UpstreamSettings(name: "u", address: .unix(path: path))
      settings.connectRetries = 100
      let exchange = harness.upstream.begin(request(settings, permit: .fresh()))
      let server = try RawServer(.unix(path: path)) { connection in
        try connection.readRequest()
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
      #expect(try await exchange.finish() == ReceivedResponse(status: 200, body: "ok"))
      #expect(server.tally.requests == 1 && harness.upstream.counters.retries > 0)
    }
    unlink(path)
  }

  @Test func `many that wait for a backend that is gone fail one after another`() async throws {
    let path = "/tmp/semel-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).sock"
    let gate = ScriptGate()
    let server = try RawServer(.unix(path: path)) { connection in
      try connection.readRequest()
      gate.pass()
    }
    try await Harness.run { harness async throws in
      var settings = UpstreamSettings(name: "u", address: .unix(path: path))
      settings.maxConnections = 1
      settings.connectRetries = 0
      // They begin and end one after another, which takes long on a busy machine.
      settings.connectTimeout = .seconds(300)
      let first = harness.upstream.begin(request(settings))
      await server.reached { $0.requests == 1 }
      // More than a stack has room for, if the failure of one began the next within it.
      let waiting = (0..<30_000).map { _ in harness.upstream.begin(request(settings)) }
      unlink(path)
      gate.open()
      #expect(await first.failure()?.isResponseLost == true)
      var unsent = 0
      for exchange in waiting where await exchange.failure()?.isNotSent == true { unsent += 1 }
      #expect(unsent == waiting.count)
    }
  }

  @Test(arguments: [(1000, 60_000), (120_000, 120_000)] as [(Int64, Int32)])
  func `data that a backend does not acknowledge ends its connection by the kernel's timer`(
    responseTimeout: Int64, userTimeout: Int32
  ) async throws {
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      var settings = UpstreamSettings.loopback(server.port)
      settings.responseTimeout = Milliseconds(responseTimeout)
      #expect(try await harness.upstream.begin(request(settings)).finish().status == 200)
      #expect(Self.userTimeouts(towards: server.port) == [userTimeout])
    }
  }

  /// `TCP_USER_TIMEOUT` of this process's connections to a port.
  private static func userTimeouts(towards port: Int) -> [Int32] {
    (0..<Int32(4096)).compactMap { descriptor in
      var address = sockaddr_in()
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let result = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &size) }
      }
      guard result == 0, address.sin_family == AF_INET, Int(address.sin_port.bigEndian) == port else {
        return nil
      }
      var span: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      return getsockopt(descriptor, Int32(IPPROTO_TCP), 18, &span, &length) == 0 ? span : nil
    }
  }

  @Test func `a connect that hangs ends at its time-out`() async throws {
    let dead = try DeadPort.hanging()
    try await Harness.run { harness async throws in
      var settings = UpstreamSettings.loopback(dead.port)
      settings.connectTimeout = 100
      settings.connectRetries = 0
      let failure = await harness.upstream.begin(request(settings)).failure()
      #expect(failure?.isNotSent == true, "\(String(describing: failure))")
    }
  }

  /// Over HTTP/2, so that connecting takes more than one step.
  @Test func `a backend that has accepted while the process stood still is not late`() async throws {
    let server = try RawServer { connection in
      // SETTINGS without any.
      try connection.write([0, 0, 0, 4, 0, 0, 0, 0, 0])
      _ = try connection.read(24)
      while true {
        let frame = try connection.read(9)
        _ = try connection.read(Int(frame[0]) << 16 | Int(frame[1]) << 8 | Int(frame[2]))
        // In response to HEADERS: `:status: 200` from HPACK's static table, and the end of the stream.
        if frame[3] == 1 { try connection.write([0, 0, 1, 1, 5] + frame[5...] + [0x88]) }
      }
    }
    try await Harness.run { harness async throws in
      var settings = UpstreamSettings.loopback(server.port)
      settings.http2 = .priorKnowledge
      settings.connectTimeout = 1500
      settings.connectRetries = 0
      let exchange = harness.upstream.begin(request(settings))
      // Longer than the time-out, on the loop itself.
      usleep(2_000_000)
      #expect(try await exchange.finish().status == 200)
    }
  }

  @Test func `a name that does not resolve is not sent`() async throws {
    try await Harness.run { harness async throws in
      var settings = UpstreamSettings(name: "u", address: .tcp(host: "nowhere.invalid", port: 80))
      settings.connectRetries = 0
      let failure = await harness.upstream.begin(request(settings)).failure()
      #expect(failure?.isNotSent == true, "\(String(describing: failure))")
    }
  }

  @Test func `a connection that is cut as soon as it is made gives its place back`() async throws {
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      var settings = UpstreamSettings.loopback(server.port)
      settings.maxConnections = 1
      settings.connectTimeout = 5000
      for _ in 0..<3 {
        // Its client is gone before the connection is there.
        let gone = Pieces([], ending: .requestBody("gone"))
        let exchange = harness.upstream.begin(request(settings, body: .streamed(gone, length: 5)))
        #expect(await exchange.failure() == .requestBody("gone"))
      }
      #expect(try await harness.upstream.begin(request(settings)).finish().status == 200)
    }
  }

  /// Sockets that close each connection as soon as it is made: to NIO it never becomes active.
  private final class CutSockets: Sockets {
    func connect(
      _ connection: OutgoingConnection, on loop: any EventLoop
    ) -> EventLoopFuture<any Channel> {
      SystemSockets.shared.connect(connection, on: loop).map { channel in
        channel.close(promise: nil)
        return channel
      }
    }

    func listen(_ listener: BoundListener, on group: any EventLoopGroup) -> EventLoopFuture<any Channel> {
      SystemSockets.shared.listen(listener, on: group)
    }
  }

  @Test(arguments: [false, true])
  func `a connection that is cut before the backend's greeting is not awaited`(
    isSecure: Bool
  ) async throws {
    let certificates = try await Certificates()
    let server = try RawServer { $0.readToEnd() }
    try await Harness.run(sockets: CutSockets()) { harness async throws in
      var settings = UpstreamSettings.loopback(server.port)
      settings.http2 = .priorKnowledge
      settings.connectRetries = 0
      if isSecure { settings.tls = ClientTLSFiles(ca: certificates.authority, serverName: "localhost") }
      let failure = await harness.upstream.begin(request(settings)).failure()
      guard case .notSent(let reason) = failure else {
        Issue.record("\(String(describing: failure))")
        return
      }
      #expect(!reason.contains("too long"), "\(reason)")
    }
  }

  @Test func `a request that waits too long for a connection is not sent`() async throws {
    let gate = ScriptGate()
    let server = try RawServer { connection in
      try connection.readRequest()
      gate.pass()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      try connection.readRequest()
    }
    try await Harness.run { harness async throws in
      var settings = UpstreamSettings.loopback(server.port)
      settings.maxConnections = 1
      settings.connectTimeout = 50
      let first = harness.upstream.begin(request(settings))
      weak var waited: HTTPExchange?
      do {
        let second = harness.upstream.begin(request(settings))
        waited = second
        guard case .busy = await second.failure() else {
          Issue.record("not told from a backend that cannot be reached")
          return
        }
      }
      // It does not stay in memory until a connection becomes free.
      #expect(waited == nil)
      gate.open()
      #expect(try await first.finish().status == 200)
      #expect(server.tally.requests == 1 && server.tally.connections == 1)
    }
  }

  @Test func `an exchange that is closed while it connects sends nothing`() async throws {
    let dead = try DeadPort.hanging()
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(request(.loopback(dead.port)))
      exchange.close()
      #expect(await exchange.failure()?.isNotSent == true)
    }
  }
}
