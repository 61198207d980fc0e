import NIOCore
import NIOPosix
import Synchronization

/// A TCP relay in front of a Redis, which loses what a test wants lost.
final class RedisRelay: Sendable {
  /// What happens to the replies.
  enum Replies: Sendable {
    case pass
    /// The next bytes are cut to so many, then both connections are closed; after that all pass again.
    case cut(after: Int)
    /// They vanish, and the connection stays.
    case vanish
  }

  private let mode = Mutex<Replies>(.pass)
  private let connections = Mutex<[any Channel]>([])
  private let vanished = Mutex<Int>(0)
  private let listener: any Channel

  var port: Int { listener.localAddress?.port ?? 0 }
  /// How many pieces of replies have vanished.
  var vanishedCount: Int { vanished.withLock { $0 } }

  init(to port: Int) async throws {
    final class Target: Sendable {
      let relay = Mutex<RedisRelay?>(nil)
    }
    let target = Target()
    listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 256)
      .childChannelOption(.autoRead, value: false)
      .childChannelInitializer { client in
        ClientBootstrap(group: client.eventLoop).channelOption(.autoRead, value: false)
          .connect(host: "127.0.0.1", port: port)
          .flatMapThrowing { server in
            let relay = target.relay.withLock { $0 }
            try client.pipeline.syncOperations.addHandler(Pipe(to: server, replies: nil))
            try server.pipeline.syncOperations.addHandler(Pipe(to: client, replies: relay))
            relay?.connections.withLock { $0 += [client, server] }
            client.setOption(.autoRead, value: true).whenComplete { _ in }
            server.setOption(.autoRead, value: true).whenComplete { _ in }
          }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    target.relay.withLock { $0 = self }
  }

  func set(_ replies: Replies) { mode.withLock { $0 = replies } }

  /// Cuts every connection; new ones are taken.
  func cutAll() {
    let open = connections.withLock { connections in
      defer { connections = [] }
      return connections
    }
    for channel in open { channel.close(promise: nil) }
  }

  func close() async {
    try? await listener.close()
    cutAll()
  }

  /// What of a reply's bytes goes on, and whether the connection is cut then.
  private func pass(_ bytes: ByteBuffer) -> (bytes: ByteBuffer?, isCut: Bool) {
    mode.withLock { mode in
      switch mode {
      case .pass: return (bytes, false)
      case .vanish:
        vanished.withLock { $0 += 1 }
        return (nil, false)
      case .cut(let count):
        mode = .pass
        return (bytes.getSlice(at: bytes.readerIndex, length: min(count, bytes.readableBytes)), true)
      }
    }
  }

  /// Hands what one side says to the other.
  private final class Pipe: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let peer: any Channel
    private let replies: RedisRelay?

    init(to peer: any Channel, replies: RedisRelay?) {
      self.peer = peer
      self.replies = replies
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = unwrapInboundIn(data)
      let (passed, isCut) = replies?.pass(bytes) ?? (bytes, false)
      if let passed { peer.writeAndFlush(passed, promise: nil) }
      if isCut {
        context.close(promise: nil)
        peer.close(promise: nil)
      }
    }

    func channelInactive(context: ChannelHandlerContext) { peer.close(promise: nil) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}
