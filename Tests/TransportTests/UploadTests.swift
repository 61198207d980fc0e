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
      for _ in 0..<500 where left != nil { await harness.context.sleep(milliseconds: 10) }
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
