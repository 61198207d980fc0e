import Glibc
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

    private let way: Way
    /// For each write whether no part of it waited at once.
    private let left: Watched<[Bool]>
    private let stalls: Watched<Int>
    private var writer: SocketWriter?

    init(_ way: Way, left: Watched<[Bool]>, stalls: Watched<Int>) {
      self.way = way
      self.left = left
      self.stalls = stalls
    }

    func channelActive(context: ChannelHandlerContext) {
      let batch = way == .batched ? WriteBatch(loop: context.eventLoop) : nil
      writer = SocketWriter(below: context.channel, isPlain: way != .throughNIO, batch: batch)
      writer?.didStall = { [stalls] in stalls.withValue { $0 += 1 } }
      for piece in SocketWriterTests.pieces { write(piece, context) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      write(unwrapInboundIn(data), context)
      writer?.flush()
      context.close(mode: .output, promise: nil)
    }

    private func write(_ piece: ByteBuffer, _ context: ChannelHandlerContext) {
      guard let writer else { return }
      let hasLeft = writer.write(piece, context)
      left.withValue { $0.append(hasLeft) }
    }
  }

  enum Way { case direct, batched, throughNIO }

  /// 3 MB, in lengths from nothing to 20 kB.
  private static let pieces = (0..<300).map { number in
    ByteBuffer(repeating: UInt8(truncatingIfNeeded: number), count: number * 7919 % 20_000)
  }

  @Test(arguments: [Way.direct, .batched, .throughNIO])
  func `all bytes arrive in order, and an immediate write is reported`(way: Way) async throws {
    let left = Watched<[Bool]>([])
    let stalls = Watched(0)
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelOption(.socketOption(.so_sndbuf), value: 16 << 10)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Talker(way, left: left, stalls: stalls))
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
    #expect(reports.first == (way != .throughNIO))
    #expect(reports.last == (way != .throughNIO))
    #expect(stalls.withValue { $0 } <= (way == .batched ? Self.pieces.count : 0))
    try await server.close()
  }
}

/// Small writes that leave at the end of a turn of the loop.
struct WriteBatchTests {
  /// Calls a closure with a connection and a writer that belongs to a batch, in one turn of the loop.
  private final class Visitor: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let visit: (ChannelHandlerContext, SocketWriter) -> Void

    init(_ visit: @escaping (ChannelHandlerContext, SocketWriter) -> Void) { self.visit = visit }

    func channelActive(context: ChannelHandlerContext) {
      let batch = WriteBatch(loop: context.eventLoop)
      visit(context, SocketWriter(below: context.channel, isPlain: true, batch: batch))
    }
  }

  private func server(
    _ visit: @escaping @Sendable (ChannelHandlerContext, SocketWriter) -> Void
  ) async throws -> any Channel {
    try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelOption(.autoRead, value: false)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Visitor(visit))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
  }

  @Test func `the writes of a turn leave as one when it ends`() async throws {
    let states = Watched<[Bool]>([])
    let server = try await server { context, writer in
      writer.write(ByteBuffer(string: "one "), context)
      writer.write(ByteBuffer(string: "two"), context)
      states.withValue { $0.append(writer.hasBatched) }
      let channel = context.channel
      context.eventLoop.execute {
        states.withValue { $0.append(writer.hasBatched) }
        channel.close(promise: nil)
      }
    }
    let client = try await RawClient(port: try #require(server.localAddress?.port))
    #expect(ByteBuffer(bytes: try await client.closedByPeer()) == ByteBuffer(string: "one two"))
    #expect(states.withValue { $0 } == [true, false])
    try await server.close()
  }

  @Test func `a batch that the peer does not take is reported once`() async throws {
    let (stalls, end) = (Watched(0), Watched<Int?>(nil))
    let server = try await server { context, writer in
      writer.didStall = { stalls.withValue { $0 += 1 } }
      Self.write(until: end, stalls, writer, NIOLoopBound(context, eventLoop: context.eventLoop))
    }
    let client = try await RawClient(port: try #require(server.localAddress?.port))
    try await client.setReading(false)
    #expect(try await end.until("a stall") { $0 } == 1)
    try await server.close()
  }

  /// Writes a piece for each turn until the peer takes no more.
  private static func write(
    until end: Watched<Int?>, _ stalls: Watched<Int>, _ writer: SocketWriter,
    _ bound: NIOLoopBound<ChannelHandlerContext>
  ) {
    writer.write(ByteBuffer(repeating: 0, count: 8192), bound.value)
    bound.value.eventLoop.execute {
      guard writer.isWaiting else { return write(until: end, stalls, writer, bound) }
      end.withValue { $0 = stalls.value }
      bound.value.close(promise: nil)
    }
  }

  @Test func `bytes of a closed connection are dropped, although its descriptor is in use again`()
    async throws
  {
    let received = Watched<[Int]>([])
    let server = try await server { context, writer in
      let old = try? context.channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
        of: NIOBSDSocket.Handle.self
      ) { $0 }
      writer.write(ByteBuffer(string: "for the first"), context)
      context.close(promise: nil)
      var pair: [Int32] = [-1, -1]
      // One of the two has the descriptor of the closed connection, unless another thread was faster.
      _ = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair)
      let (other, both) = (pair[1] == old ? pair[0] : pair[1], pair)
      context.eventLoop.execute {
        var byte: UInt8 = 0
        received.withValue { $0.append(recv(other, &byte, 1, Int32(MSG_DONTWAIT))) }
        for descriptor in both { close(descriptor) }
      }
    }
    let client = try await RawClient(port: try #require(server.localAddress?.port))
    #expect(try await client.closedByPeer().isEmpty)
    #expect(try await received.until("a look at the reused descriptor") { $0.first } == -1)
    try await server.close()
  }
}
