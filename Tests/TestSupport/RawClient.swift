import Glibc
import NIOCore
import NIOPosix

/// A client's TCP connection that sends and gets exactly the bytes that a test names.
package final class RawClient: Sendable {
  /// The bytes from the other side.
  package struct Inbox: Sendable {
    package var bytes: [UInt8] = []
    /// All bytes that ever came, also those that were dropped by `isCounting`.
    package var total = 0
    /// Whether bytes are counted and dropped.
    package var isCounting = false
    /// Whether the other side closed or reset the connection.
    package var isClosed = false
    /// Whether it reset the connection.
    package var isReset = false
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    let inbox: Watched<Inbox>

    init(_ inbox: Watched<Inbox>) { self.inbox = inbox }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let buffer = unwrapInboundIn(data)
      inbox.withValue { inbox in
        inbox.total += buffer.readableBytes
        if !inbox.isCounting { inbox.bytes += buffer.readableBytesView }
      }
    }

    func channelInactive(context: ChannelHandlerContext) {
      inbox.withValue { $0.isClosed = true }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if case .some(.inputClosed) = event as? ChannelEvent { inbox.withValue { $0.isClosed = true } }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      inbox.withValue { inbox in
        inbox.isClosed = true
        inbox.isReset = (error as? IOError)?.errnoCode == ECONNRESET
      }
      context.close(promise: nil)
    }
  }

  package let inbox: Watched<Inbox>
  private let channel: any Channel

  /// Connects to a port of the loopback address.
  ///
  /// - Parameter receiveBuffer: The bytes that the kernel takes while nobody reads; `nil` for its own choice, which may
  ///   be tens of megabytes.
  package convenience init(port: Int, receiveBuffer: Int? = nil) async throws {
    try await self.init(SocketAddress(ipAddress: "127.0.0.1", port: port), receiveBuffer: receiveBuffer)
  }

  /// Connects to a unix socket.
  package convenience init(path: String) async throws {
    try await self.init(SocketAddress(unixDomainSocketPath: path))
  }

  private init(_ address: SocketAddress, receiveBuffer: Int? = nil) async throws {
    let inbox = Watched(Inbox())
    self.inbox = inbox
    var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    if let receiveBuffer {
      // Before the connection, since the window is agreed upon with that.
      bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: .init(receiveBuffer))
    }
    channel = try await bootstrap.channelOption(.allowRemoteHalfClosure, value: true)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Handler(inbox))
        }
      }
      .connect(to: address).get()
    if address.port != nil { try await channel.setOption(.socketOption(.tcp_nodelay), value: 1).get() }
  }

  deinit { channel.close(promise: nil) }

  /// Sends the bytes; returns once the kernel has them.
  package func send(_ bytes: some Sequence<UInt8>) async throws {
    try await channel.writeAndFlush(ByteBuffer(bytes: bytes))
  }

  /// Sends the text as it is: line ends are the caller's.
  package func send(_ text: String) async throws {
    try await send(text.utf8)
  }

  /// The next response, which is for a request of `method`. One of 1xx counts.
  package func response(to method: String = "POST", within span: Duration = .seconds(20)) async throws
    -> ReceivedResponse
  {
    let parsed = try await inbox.until("a response", within: span) { inbox -> ReceivedResponse.Parsed? in
      switch ReceivedResponse.parse(inbox.bytes, to: method, isClosed: inbox.isClosed) {
      case .incomplete: return inbox.isClosed ? .malformed("closed without a response") : nil
      case .whole(let response, let count):
        inbox.bytes.removeFirst(count)
        return .whole(response, count: count)
      case .malformed(let why): return .malformed(why)
      }
    }
    guard case .whole(let response, _) = parsed else { throw TestFailure("no whole response: \(parsed)") }
    return response
  }

  /// Waits until the other side has closed; the bytes that nobody read by then.
  @discardableResult
  package func closedByPeer(within span: Duration = .seconds(20)) async throws -> [UInt8] {
    try await inbox.until("the connection's end", within: span) { $0.isClosed ? $0.bytes : nil }
  }

  /// Stops or resumes taking bytes from the kernel: a client that is slow.
  package func setReading(_ isReading: Bool) async throws {
    try await channel.setOption(.autoRead, value: isReading).get()
  }

  /// Says that nothing more will be sent (FIN), and goes on reading.
  package func closeSending() async throws {
    try await channel.close(mode: .output)
  }

  /// Cuts the connection by a reset: the client is certainly gone.
  ///
  /// - Parameter untilDelivered: Waits until the server's kernel has it, which on a busy machine is after the call that
  ///   sends it. Each look reads the kernel's list of all connections.
  package func reset(untilDelivered: Bool = false) async throws {
    guard let socket = channel as? any SocketOptionProvider else { throw TestFailure("no socket") }
    let (client, server) = (channel.localAddress?.port, channel.remoteAddress?.port)
    try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
    try await channel.close()
    guard untilDelivered, let client, let server else { return }
    while try KernelConnections().serverHas(client, to: server) {
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// Closes both directions.
  package func close() async throws {
    try await channel.close()
  }
}
