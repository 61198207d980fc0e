import Idempotency
import NIOCore
import TestSupport
import Testing

@testable import Transport

/// A request that may be sent once, and no second time.
struct ResendTests {
  /// Responds to the first request, then takes the second on the same connection and closes without a response.
  private static func trap() throws -> RawServer {
    try RawServer { connection in
      try connection.readRequest()
      guard connection.number == 1 else {
        return try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      }
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      try connection.readRequest()
    }
  }

  static let bodies: [(String, RequestBody)] = [
    ("POST", .whole(ByteBuffer(string: "{}"))), ("POST", .whole(ByteBuffer())), ("POST", .none),
    ("DELETE", .none),
    ("PUT", .whole(ByteBuffer(repeating: 0x61, count: 300_000))), ("GET", .none),
  ]

  @Test(arguments: bodies.indices)
  func `a reused connection that dies before the response ends as a lost response`(index: Int) async throws {
    let server = try Self.trap()
    let (method, body) = Self.bodies[index]
    try await Harness.run { harness async throws in
      let first = try await harness.upstream.begin(.to(server)).finish()
      #expect(first == ReceivedResponse(status: 200, body: "ok"))
      let permit = SendPermit.fresh()
      let second = await harness.upstream.begin(.to(server, method, body: body, permit: permit)).failure()
      #expect(second?.isResponseLost == true, "\(String(describing: second))")
      #expect(permit.isSent)
      #expect(server.tally.requests == 2)
    }
  }

  @Test func `a request without a permit is not sent again either`() async throws {
    let server = try Self.trap()
    try await Harness.run { harness async throws in
      _ = try await harness.upstream.begin(.to(server)).finish()
      let body = RequestBody.whole(ByteBuffer(string: "{}"))
      let second = await harness.upstream.begin(.to(server, "POST", body: body)).failure()
      #expect(second?.isResponseLost == true)
      #expect(server.tally.requests == 2)
    }
  }

  @Test func `a safe method without a permit may be sent again`() async throws {
    let server = try Self.trap()
    try await Harness.run { harness async throws in
      _ = try await harness.upstream.begin(.to(server)).finish()
      let second = try await harness.upstream.begin(.to(server)).finish()
      #expect(second.status == 200)
      #expect(server.tally.requests == 3)
    }
  }

  @Test func `a stale permit never sends`() async throws {
    let server = try RawServer { try $0.readRequest() }
    try await Harness.run { harness async throws in
      let permit = SendPermit(requestedAt: BootInstant(nanoseconds: 0), lease: .seconds(1))
      let failure = await harness.upstream.begin(.to(server, "POST", permit: permit)).failure()
      #expect(failure?.isNotSent == true)
      #expect(!permit.isSent)
      #expect(server.tally.requests == 0)
    }
  }

  @Test func `a permit that was used sends nothing more`() async throws {
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 204 No Content\r\n\r\n")
    }
    try await Harness.run { harness async throws in
      let permit = SendPermit.fresh()
      _ = try await harness.upstream.begin(.to(server, "POST", permit: permit)).finish()
      let failure = await harness.upstream.begin(.to(server, "POST", permit: permit)).failure()
      #expect(failure?.isResponseLost == true)
      #expect(server.tally.requests == 1)
    }
  }
}
