import Glibc
import Idempotency
import NIOCore
import Platform
import TestSupport
import Testing

@testable import Transport

/// Unrequested bytes of a backend, on connections in clear; those of TLS are tried end to end.
struct UnaskedTests {
  private static let stray = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"

  @Test(arguments: ["GET", "HEAD", "POST", "DELETE"])
  func `a kept connection with anything unread gets no request`(method: String) async throws {
    let gate = ScriptGate()
    let sent = ScriptGate()
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown")
      guard connection.number == 1 else { return connection.readToEnd() }
      gate.pass()
      try connection.write(Self.stray)
      sent.open()
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      #expect(try await harness.upstream.begin(.to(server)).finish().body == "own")
      // The loop does not look at its sockets from here on until the next request was sent.
      gate.open()
      sent.pass()
      let permit = method == "POST" ? SendPermit.fresh() : nil
      let next = try await harness.upstream.begin(.to(server, method, permit: permit)).finish()
      #expect(next.body == (method == "HEAD" ? "" : "own"))
      #expect(server.tally.connections == 2 && server.tally.requests == 2)
    }
  }

  /// The process stood still for longer than the time-out, and the response lay there all the while.
  @Test func `a late time-out reads once before it gives up`() async throws {
    let standsStill = ScriptGate()
    let sent = ScriptGate()
    let server = try RawServer { connection in
      try connection.readRequest()
      standsStill.pass()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown")
      sent.open()
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server, "POST", permit: .fresh()))
      await server.reached { $0.requests == 1 }
      harness.context.loop.execute {
        standsStill.open()
        sent.pass()
        // Longer than the time-out.
        usleep(150_000)
      }
      #expect(try await exchange.finish(within: 100).body == "own")
    }
  }
}
