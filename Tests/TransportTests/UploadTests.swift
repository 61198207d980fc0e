import Idempotency
import NIOCore
import Platform
import TestSupport
import Testing

@testable import Transport

/// A request that is still being sent.
struct UploadTests {
  private static let large = ByteBuffer(repeating: 0x61, count: 10 << 20)

  static let earlyResponses = [
    "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
    "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno",
    "HTTP/1.1 413 Too Large\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
  ]

  @Test(arguments: earlyResponses, [true, false])
  func `an early whole response counts`(response: String, isStreamed: Bool) async throws {
    let server = try RawServer { connection in
      try connection.readHead()
      try connection.write(response)
      // Nothing more is read, nor is the connection closed: the request stays under way.
      ScriptGate().pass()
    }
    try await Harness.run { harness async throws in
      let body: RequestBody =
        isStreamed ? .streamed(Trickle(Self.large), length: 10 << 20) : .whole(Self.large)
      let exchange = harness.upstream.begin(.to(server, "POST", body: body, permit: .fresh()))
      let got = try await exchange.finish()
      #expect(got.body == "no")
    }
  }

  @Test(arguments: earlyResponses)
  func `a whole response counts even if a reset follows`(response: String) async throws {
    let server = try RawServer { connection in
      try connection.readHead()
      _ = try connection.read(100_000)
      try connection.write(response)
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server, "POST", body: .whole(Self.large), permit: .fresh()))
      #expect(try await exchange.finish().body == "no")
    }
  }

  @Test func `an early response counts while the client's body is awaited`() async throws {
    let server = try RawServer { connection in
      try connection.readHead()
      try connection.write("HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n")
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      let body = RequestBody.streamed(Silence(), length: nil)
      let exchange = harness.upstream.begin(.to(server, "POST", body: body))
      #expect(try await exchange.finish() == ReceivedResponse(status: 400, body: "no"))
    }
  }

  @Test(arguments: [true, false])
  func `what the kernel holds of a request that is given up is dropped, if it has a record`(isOwned: Bool)
    async throws
  {
    let gate = ScriptGate()
    let (ends, end) = AsyncStream<Void>.makeStream()
    let server = try RawServer(receiveBuffer: 4096) { connection in
      try connection.readHead()
      gate.pass()
      connection.readToEnd()
      end.finish()
    }
    try await Harness.run { harness async throws in
      // The kernel takes all of it, and the backend a part.
      let body = RequestBody.whole(ByteBuffer(repeating: 0x61, count: 1 << 20))
      let exchange = harness.upstream.begin(
        .to(server, "POST", body: body, permit: isOwned ? .fresh() : nil))
      await server.reached { $0.requests == 1 }
      while !exchange.isSent { try await Task.sleep(for: .milliseconds(1)) }
      exchange.close()
    }
    gate.open()
    for await _ in ends {}
    #expect((server.tally.bytes < 1 << 20) == isOwned)
  }

  @Test func `a backend that reads slowly slows the client down`() async throws {
    let gate = ScriptGate()
    let server = try RawServer(receiveBuffer: 4096) { connection in
      try connection.readHead()
      gate.pass()
      _ = try connection.read(10 << 20)
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      let stream = Trickle(Self.large)
      let exchange = harness.upstream.begin(.to(server, "PUT", body: .streamed(stream, length: 10 << 20)))
      await server.reached { $0.requests == 1 }
      #expect(await stream.stalled(on: harness.context) < 8 << 20)
      gate.open()
      #expect(try await exchange.finish().status == 200)
      #expect(stream.taken == 10 << 20)
    }
  }

  @Test func `an upload ends with its exchange, although the backend takes nothing`() async throws {
    let gate = ScriptGate()
    let server = try RawServer(receiveBuffer: 4096) { connection in
      try connection.readHead()
      gate.pass()
    }
    try await Harness.run { harness async throws in
      weak var left: Trickle?
      do {
        let stream = Trickle(Self.large)
        left = stream
        let exchange = harness.upstream.begin(.to(server, "PUT", body: .streamed(stream, length: 10 << 20)))
        await server.reached { $0.requests == 1 }
        _ = await stream.stalled(on: harness.context)
        exchange.close()
      }
      // Its task holds the stream.
      for _ in 0..<2000 where left != nil { await harness.context.sleep(milliseconds: 10) }
      #expect(left == nil)
    }
    gate.open()
  }

  @Test func `a backend that reads nothing of a whole body times out`() async throws {
    let server = try RawServer(receiveBuffer: 4096) { connection in
      try connection.readHead()
      ScriptGate().pass()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server, "PUT", body: .whole(Self.large)))
      await #expect(throws: UpstreamFailure.timedOut) { try await exchange.head(within: 200) }
      exchange.close()
    }
  }

  static let brokenStreams: [(pieces: [String], ending: UpstreamFailure?, length: Int?)] = [
    (["ab"], .requestBody("gone"), nil), (["ab"], .requestBody("gone"), 5), (["ab"], nil, 5),
    (["abc", "def"], nil, 5),
  ]

  @Test(arguments: brokenStreams.indices)
  func `a client's body that breaks cuts the request`(index: Int) async throws {
    let cut = ScriptGate()
    let server = try RawServer { connection in
      defer { cut.open() }
      // The cut may come before the head went out.
      try connection.readHead()
      connection.readToEnd()
    }
    let (pieces, ending, length) = Self.brokenStreams[index]
    try await Harness.run { harness async throws in
      let body = RequestBody.streamed(Pieces(pieces, ending: ending), length: length)
      let failure = await harness.upstream.begin(.to(server, "POST", body: body)).failure()
      guard case .requestBody = failure else {
        Issue.record("\(String(describing: failure))")
        return
      }
      cut.pass()
    }
  }

  @Test func `the span begins with the request's last byte`() async throws {
    let client = Later()
    let server = try RawServer { connection in
      try connection.readRequest()
      connection.readToEnd()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server, "POST", body: .streamed(client, length: nil)))
      let waiting = Task(executorPreference: harness.context.executor) {
        await exchange.failure(within: 50)
      }
      // Longer than the span: while the client is silent it does not run.
      await harness.context.sleep(milliseconds: 200)
      #expect(exchange.failure == nil && exchange.sentAt == nil)
      client.end()
      #expect(await waiting.value == .timedOut)
      #expect(exchange.sentAt != nil)
    }
  }
}

/// Room for others, which a client that hardly moves its body has to make.
struct MakingRoomTests {
  /// Four connections, three of which are for requests without protection.
  private static func settings(_ server: RawServer) -> UpstreamSettings {
    var settings = UpstreamSettings.loopback(server.port)
    settings.maxConnections = 4
    settings.connectTimeout = 500
    return settings
  }

  private static func server() throws -> RawServer {
    try RawServer { connection in
      while true {
        let head = try connection.readHead()
        if head.hasPrefix("PUT") { return connection.readToEnd() }
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      }
    }
  }

  @Test func `the upload that has moved least ends when no connection is free`() async throws {
    let server = try Self.server()
    let settings = Self.settings(server)
    try await Harness.run { harness async throws in
      // One that has sent more than is awaited before a request begins, and two that have sent less.
      let fast = harness.upstream.begin(
        .to(settings, "PUT", body: .streamed(Pausing(100_000), length: 200_000)))
      let slow = [1000, 0].map {
        harness.upstream.begin(.to(settings, "PUT", body: .streamed(Pausing($0), length: 200_000)))
      }
      await server.reached { $0.requests == 3 && $0.bytes > 100_000 }
      for _ in slow { #expect(try await harness.upstream.begin(.to(settings)).finish().status == 200) }
      #expect(fast.failure == nil)
      #expect(slow.contains { $0.failure?.isOfBody == true })
      fast.close()
      for exchange in slow { exchange.close() }
    }
  }

  @Test func `an upload that has moved just now is left alone`() async throws {
    let server = try Self.server()
    let settings = Self.settings(server)
    try await Harness.run { harness async throws in
      let fast = (0..<3).map { _ in
        harness.upstream.begin(.to(settings, "PUT", body: .streamed(Pausing(100_000), length: 200_000)))
      }
      await server.reached { $0.requests == 3 && $0.bytes > 300_000 }
      guard case .busy = await harness.upstream.begin(.to(settings)).failure() else {
        Issue.record("a connection was free")
        return
      }
      for exchange in fast {
        #expect(exchange.failure == nil)
        exchange.close()
      }
    }
  }

  @Test func `a response that nobody reads ends when no connection is free`() async throws {
    let server = try RawServer { connection in
      let head = try connection.readHead()
      let length = head.hasPrefix("GET /large") ? 8 << 20 : 0
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
      try connection.write(String(repeating: "x", count: length))
      connection.readToEnd()
    }
    let settings = Self.settings(server)
    try await Harness.run { harness async throws in
      var unread: [HTTPExchange] = []
      for _ in 0..<3 {
        let exchange = harness.upstream.begin(.to(settings, "GET", "/large"))
        _ = try await exchange.head(within: .seconds(10))
        unread.append(exchange)
      }
      while !unread.allSatisfy(\.isHeldUp) { await harness.context.sleep(milliseconds: 10) }
      // The time that a client has to move something: nothing shows its passing.
      await harness.context.sleep(milliseconds: 5500)
      #expect(try await harness.upstream.begin(.to(settings)).finish().status == 200)
      #expect(unread.count { $0.failure != nil } == 1)
      for exchange in unread { exchange.close() }
    }
  }
}

/// A client that sends a part of its body and then nothing. `@unchecked`, because one exchange alone reads it.
private final class Pausing: RequestBodyStream, @unchecked Sendable {
  private var left: Int

  init(_ count: Int) { left = count }

  func next() async throws(UpstreamFailure) -> ByteBuffer? {
    if left == 0 { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
    defer { left = 0 }
    return ByteBuffer(repeating: 0x61, count: left)
  }
}

extension UpstreamFailure {
  fileprivate var isOfBody: Bool { if case .requestBody = self { true } else { false } }
}
