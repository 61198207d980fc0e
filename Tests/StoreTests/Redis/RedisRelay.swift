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
    /// Each connection passes so many bytes of commands, and then no more; replies pass.
    case stall(after: Int)
    /// Replies vanish, and the connection stays. It passes no reply afterwards either, as TCP leaves no gap in what it
    /// delivers; only `cutAll` ends it.
    case vanish
    /// After the next reply that begins so, commands are kept until `release`.
    case holdAfter(reply: String)
    /// Commands are kept until `release`.
    case hold
  }

  private let mode = Mutex<Mode>(.pass)
  private let ghost = Mutex<(way: any Channel, command: ByteBuffer)?>(nil)
  private let held = Mutex<[(way: any Channel, command: ByteBuffer)]>([])
  private let connections = Mutex<[any Channel]>([])
  private let vanished = Mutex<Int>(0)
  /// The number of connections so far, and of those among them that pass no reply.
  private let silenced = Mutex<(of: Int, first: Int)>((of: 0, first: 0))
  private let target: Mutex<Int>
  private let listener: any Channel

  var port: Int { listener.localAddress?.port ?? 0 }
  /// The number of pieces of replies that have vanished.
  var vanishedCount: Int { vanished.withLock { $0 } }
  /// Whether a command is kept.
  var isHaunted: Bool { ghost.withLock { $0 != nil } }
  /// Whether commands are kept by `holdAfter`.
  var isHolding: Bool { held.withLock { !$0.isEmpty } }

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
            var passed = 0
            let number = relay?.nextNumber() ?? 0
            try client.pipeline.syncOperations.addHandler(
              Pipe(to: server) {
                passed += $0.readableBytes
                if relay?.stalls(after: passed) == true { return .vanishes }
                return relay?.fate(ofCommand: $0, for: server) ?? .passes($0)
              })
            try server.pipeline.syncOperations.addHandler(
              Pipe(to: client) {
                if let relay, number <= relay.silenced.withLock({ $0.first }) { return .vanishes }
                return relay?.fate(of: $0) ?? .passes($0)
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

  /// Has the connections so far pass no reply from now on. Fresh ones do.
  func silence() { silenced.withLock { $0.first = $0.of } }

  /// Lets the kept commands go on to Redis.
  func release() {
    let waiting = held.withLock { held in
      defer { held = [] }
      if case .hold = mode.withLock({ $0 }) { set(.pass) }
      return held
    }
    for (way, command) in waiting { way.writeAndFlush(command, promise: nil) }
    guard let (way, command) = ghost.withLock({ $0.take() }) else { return }
    way.writeAndFlush(command, promise: nil)
  }

  private func nextNumber() -> Int {
    silenced.withLock {
      $0.of += 1
      return $0.of
    }
  }

  /// Whether a connection that has passed so many bytes of commands passes no more.
  private func stalls(after count: Int) -> Bool {
    mode.withLock { if case .stall(let max) = $0 { count > max } else { false } }
  }

  private func fate(ofCommand command: ByteBuffer, for way: any Channel) -> Fate {
    held.withLock { held in
      mode.withLock { mode in
        switch mode {
        case .haunt:
          mode = .pass
          ghost.withLock { $0 = (way, command) }
          return .haunts
        case .hold:
          held.append((way, command))
          return .waits
        case .pass, .cut, .vanish, .holdAfter, .stall: return .passes(command)
        }
      }
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
      case .pass, .haunt, .hold, .stall: return .passes(reply)
      case .holdAfter(let beginning):
        if reply.readableBytesView.starts(with: beginning.utf8) { mode = .hold }
        return .passes(reply)
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
    /// The bytes are kept.
    case waits
  }

  /// Hands the bytes of one side to the other.
  private final class Pipe: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let peer: any Channel
    private let fate: (ByteBuffer) -> Fate
    private var isHaunting = false
    /// Whether bytes have vanished, so that none may follow them.
    private var hasGap = false

    init(
      to peer: any Channel, _ fate: @escaping (ByteBuffer) -> Fate
    ) {
      self.peer = peer
      self.fate = fate
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard !hasGap else { return }
      switch fate(unwrapInboundIn(data)) {
      case .passes(let bytes): peer.writeAndFlush(bytes, promise: nil)
      case .vanishes: hasGap = true
      case .waits: break
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
      if !isHaunting { peer.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}
