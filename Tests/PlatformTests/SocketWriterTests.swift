import NIOCore
import NIOPosix
import Platform
import TestSupport
import Testing

/// Bytes that go to a socket past NIO, and those that have to wait there.
struct SocketWriterTests {
  /// Writes more than the kernel takes in one turn of its loop, and a last piece for whatever its client says then.
  private final class Talker: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let isPlain: Bool
    /// For each write whether all of it left at once.
    private let left: Watched<[Bool]>
    private var writer: SocketWriter?

    init(isPlain: Bool, left: Watched<[Bool]>) {
      self.isPlain = isPlain
      self.left = left
    }

    func channelActive(context: ChannelHandlerContext) {
      writer = SocketWriter(below: context.channel, isPlain: isPlain)
      for piece in SocketWriterTests.pieces { write(piece, context) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      write(unwrapInboundIn(data), context)
      context.close(mode: .output, promise: nil)
    }

    private func write(_ piece: ByteBuffer, _ context: ChannelHandlerContext) {
      guard let writer else { return }
      let hasLeft = writer.write(piece, context)
      left.withValue { $0.append(hasLeft) }
    }
  }

  /// 3 MB, in lengths from nothing to 20 kB.
  private static let pieces = (0..<300).map { number in
    ByteBuffer(repeating: UInt8(truncatingIfNeeded: number), count: number * 7919 % 20_000)
  }

  @Test(arguments: [true, false])
  func `all bytes arrive in order, and an immediate write is reported`(isPlain: Bool) async throws {
    let left = Watched<[Bool]>([])
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelOption(.socketOption(.so_sndbuf), value: 16 << 10)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Talker(isPlain: isPlain, left: left))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let client = try await RawClient(port: try #require(server.localAddress?.port))
    var expected = ByteBuffer()
    for piece in Self.pieces { expected.writeImmutableBuffer(piece) }
    let count = expected.readableBytes
    try await client.inbox.until("all pieces") { $0.total == count ? true : nil }
    expected.writeString("the last")
    try await client.send("the last")
    let got = ByteBuffer(bytes: try await client.closedByPeer())
    #expect(got == expected)
    let reports = left.withValue { $0 }
    #expect(reports.count == Self.pieces.count + 1)
    #expect(reports.contains(false))
    #expect(reports.first == isPlain)
    #expect(reports.last == isPlain)
    try await server.close()
  }
}
