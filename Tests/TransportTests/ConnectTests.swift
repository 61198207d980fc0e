import Glibc
import Idempotency
import NIOCore
import TestSupport
import Testing
import Wire

@testable import Transport

/// Connecting to a backend.
struct ConnectTests {
  private func request(_ settings: UpstreamSettings, permit: SendPermit? = nil) -> UpstreamRequest {
    UpstreamRequest(
      upstream: settings, method: "POST", target: "/", fields: ByteBuffer(string: "Host: h\r\n"), body: .none,
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

  @Test func `a name that does not resolve is not sent`() async throws {
    try await Harness.run { harness async throws in
      var settings = UpstreamSettings(name: "u", address: .tcp(host: "nowhere.invalid", port: 80))
      settings.connectRetries = 0
      let failure = await harness.upstream.begin(request(settings)).failure()
      #expect(failure?.isNotSent == true, "\(String(describing: failure))")
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
        #expect(await second.failure()?.isNotSent == true)
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
