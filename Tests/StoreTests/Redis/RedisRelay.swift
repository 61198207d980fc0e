import NIOCore
import NIOPosix
import Synchronization

/// A TCP relay in front of a Redis, which loses what a test wants lost.
final class RedisRelay: Sendable {
  /// The treatment of commands and replies.
  enum Mode: Sendable {
    case pass
    /// The next command is kept until `release`, and its sender is cut off at once; after that all pass again.
    case haunt
    /// The next reply's bytes are cut to so many, then both connections are closed; after that all pass again.
    case cut(after: Int)
    /// Replies vanish, and the connection stays. It passes no reply afterwards either, as TCP leaves no gap in what it
    /// delivers; only `cutAll` ends it.
    case vanish
  }

  private let mode = Mutex<Mode>(.pass)
  private let ghost = Mutex<(way: any Channel, command: ByteBuffer)?>(nil)
  private let connections = Mutex<[any Channel]>([])
  private let vanished = Mutex<Int>(0)
  private let ended = Mutex<Int>(0)
  private let target: Mutex<Int>
  private let listener: any Channel

  var port: Int { listener.localAddress?.port ?? 0 }
  /// The number of pieces of replies that have vanished.
  var vanishedCount: Int { vanished.withLock { $0 } }
  /// The number of connections that the server has closed.
  var endedCount: Int { ended.withLock { $0 } }
  /// Whether a command is kept.
  var isHaunted: Bool { ghost.withLock { $0 != nil } }

  init(to port: Int) async throws {
    final class Owner: Sendable {
      let relay = Mutex<RedisRelay?>(nil)
    }
    let owner = Owner()
    target = Mutex(port)
    listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 256)
      .childChannelOption(.autoRead, value: false)
      .childChannelInitializer { client in
        let port = owner.relay.withLock { $0 }?.target.withLock { $0 } ?? port
        return ClientBootstrap(group: client.eventLoop).channelOption(.autoRead, value: false)
          .connect(host: "127.0.0.1", port: port)
          .flatMapThrowing { server in
            let relay = owner.relay.withLock { $0 }
            try client.pipeline.syncOperations.addHandler(
              Pipe(to: server) { relay?.keeps($0, for: server) == true ? .haunts : .passes($0) })
            try server.pipeline.syncOperations.addHandler(
              Pipe(to: client, onEnd: { relay?.ended.withLock { $0 += 1 } }) {
                relay?.fate(of: $0) ?? .passes($0)
              })
            relay?.connections.withLock { $0 += [client, server] }
            client.setOption(.autoRead, value: true).whenComplete { _ in }
            server.setOption(.autoRead, value: true).whenComplete { _ in }
          }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    owner.relay.withLock { $0 = self }
  }

  /// Leads new connections to another server, and cuts the others.
  func lead(to port: Int) {
    target.withLock { $0 = port }
    cutAll()
  }

  func set(_ mode: Mode) { self.mode.withLock { $0 = mode } }

  /// Lets the kept command go on to Redis.
  func release() {
    guard let (way, command) = ghost.withLock({ $0.take() }) else { return }
    way.writeAndFlush(command, promise: nil)
  }

  /// Whether this command is kept, whose sender is then cut off.
  private func keeps(_ command: ByteBuffer, for way: any Channel) -> Bool {
    mode.withLock { mode in
      guard case .haunt = mode else { return false }
      mode = .pass
      ghost.withLock { $0 = (way, command) }
      return true
    }
  }

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

  private func fate(of reply: ByteBuffer) -> Fate {
    mode.withLock { mode in
      switch mode {
      case .pass, .haunt: return .passes(reply)
      case .vanish:
        vanished.withLock { $0 += 1 }
        return .vanishes
      case .cut(let count):
        mode = .pass
        return .ends(
          after: reply.getSlice(at: reply.readerIndex, length: min(count, reply.readableBytes)))
      }
    }
  }

  /// The treatment of some bytes and of their connection.
  private enum Fate {
    case passes(ByteBuffer)
    case vanishes
    /// Both connections are closed after these bytes.
    case ends(after: ByteBuffer?)
    /// The bytes are kept, and only their sender's connection is closed.
    case haunts
  }

  /// Hands the bytes of one side to the other.
  private final class Pipe: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let peer: any Channel
    private let fate: (ByteBuffer) -> Fate
    private let onEnd: () -> Void
    private var isHaunting = false
    /// Whether bytes have vanished, so that none may follow them.
    private var hasGap = false

    init(
      to peer: any Channel, onEnd: @escaping () -> Void = {}, _ fate: @escaping (ByteBuffer) -> Fate
    ) {
      self.peer = peer
      self.onEnd = onEnd
      self.fate = fate
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard !hasGap else { return }
      switch fate(unwrapInboundIn(data)) {
      case .passes(let bytes): peer.writeAndFlush(bytes, promise: nil)
      case .vanishes: hasGap = true
      case .ends(let bytes):
        if let bytes { peer.writeAndFlush(bytes, promise: nil) }
        context.close(promise: nil)
        peer.close(promise: nil)
      case .haunts:
        isHaunting = true
        context.close(promise: nil)
      }
    }

    func channelInactive(context: ChannelHandlerContext) {
      onEnd()
      if !isHaunting { peer.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}
