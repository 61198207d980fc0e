import Glibc
import NIOCore
import NIOHTTP2
import NIOPosix

/// The sockets of one event loop: the only way on which the proxy, its backends and its store reach the network. A
/// simulation puts its own in the place of the system's.
public protocol Sockets: AnyObject, Sendable {
  /// Connects, and prepares the channel before anything can arrive on it.
  func connect(_ connection: OutgoingConnection, on loop: any EventLoop) -> EventLoopFuture<any Channel>
  /// Binds an address without accepting connections: they wait until the channel reads by itself.
  func listen(_ listener: BoundListener, on group: any EventLoopGroup) -> EventLoopFuture<any Channel>
}

/// A connection that a loop makes.
public struct OutgoingConnection: Sendable {
  public enum Place: Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  public let place: Place
  /// The time for each address of the host.
  public let timeout: TimeAmount
  public var lookups = HostLookups.shared
  /// The options of a TCP socket.
  public var options: [(option: ChannelOptions.Types.SocketOption, value: SocketOptionValue)] = []
  /// The sizes of its reads; `nil` for NIO's own.
  public var reads: (any RecvByteBufferAllocator)?
  /// Adds the channel's handlers, on its loop.
  public let prepare: @Sendable (any Channel) throws -> Void

  public init(
    to place: Place, timeout: TimeAmount, prepare: @escaping @Sendable (any Channel) throws -> Void
  ) {
    self.place = place
    self.timeout = timeout
    self.prepare = prepare
  }
}

/// A listener, whose connections stay open for writing when their peers have sent all.
public struct BoundListener: Sendable {
  public enum Place: Sendable {
    case tcp(host: String, port: Int)
    /// A descriptor that is bound, and listens.
    case bound(NIOBSDSocket.Handle)
  }

  public let place: Place
  public let backlog: Int32
  /// The sizes of the connections' reads.
  public let reads: any RecvByteBufferAllocator
  /// Adds the handlers of a connection, on its loop.
  public let accept: @Sendable (any Channel) throws -> Void

  public init(
    at place: Place, backlog: Int32, reads: any RecvByteBufferAllocator,
    accept: @escaping @Sendable (any Channel) throws -> Void
  ) {
    self.place = place
    self.backlog = backlog
    self.reads = reads
    self.accept = accept
  }
}

/// The sockets of the system.
public final class SystemSockets: Sockets {
  public static let shared = SystemSockets()

  /// The kernel takes no more of what a client does not read: else hundreds of them would have it copy a megabyte each
  /// before the loop's turn ends.
  private static let unsentLimit = NIOBSDSocket.Option(rawValue: CInt(TCP_NOTSENT_LOWAT))
  /// The bytes that may wait for the client's window.
  private static let maxUnsent = 128 << 10

  public func connect(
    _ connection: OutgoingConnection, on loop: any EventLoop
  ) -> EventLoopFuture<any Channel> {
    let bootstrap = Self.bootstrap(for: connection, on: loop)
    switch connection.place {
    case .tcp(let host, let port):
      return connection.options.reduce(bootstrap) { $0.channelOption($1.option, value: $1.value) }
        .connect(host: host, port: port)
    case .unix(let path):
      do { return bootstrap.withConnectedSocket(try UnixSocket.connect(to: path)) } catch {
        return loop.makeFailedFuture(error)
      }
    }
  }

  private static func bootstrap(
    for connection: OutgoingConnection, on loop: any EventLoop
  ) -> ClientBootstrap {
    let bootstrap = ClientBootstrap(group: loop)
      .resolver(HostResolver(on: loop, lookups: connection.lookups))
      .connectTimeout(connection.timeout)
      // A second read would usually find nothing.
      .channelOption(.maxMessagesPerRead, value: 1)
      .channelInitializer { [prepare = connection.prepare] channel in
        channel.eventLoop.makeCompletedFuture { try prepare(channel) }
      }
    guard let reads = connection.reads else { return bootstrap }
    return bootstrap.channelOption(.recvAllocator, value: reads)
  }

  public func listen(
    _ listener: BoundListener, on group: any EventLoopGroup
  ) -> EventLoopFuture<any Channel> {
    let bootstrap = ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: listener.backlog)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelOption(.autoRead, value: false)
      // One read per wake-up: most requests are one read, and another one costs a system call.
      .childChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(.recvAllocator, value: listener.reads)
      .childChannelInitializer { [accept = listener.accept] channel in
        channel.eventLoop.makeCompletedFuture { try accept(channel) }
      }
    switch listener.place {
    case .tcp(let host, let port):
      // The connections inherit it.
      return bootstrap.serverChannelOption(.tcpOption(Self.unsentLimit), value: Self.maxUnsent)
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1).bind(host: host, port: port)
    case .bound(let descriptor): return bootstrap.withBoundSocket(descriptor)
    }
  }
}

/// A channel without a descriptor, as a simulation has them, which knows by itself what a look at a socket would show.
public protocol DescriptorlessChannel: Channel {
  /// The state of its input, of which nothing is taken.
  var arrival: SocketArrival { get }
}

/// The result of a look at a socket that reads nothing of it.
public enum SocketArrival: Sendable {
  /// Nothing has arrived that was not read.
  case none
  case bytes
  /// The peer has closed the connection, or it has failed.
  case end
}

/// The client's side of a Unix socket.
enum UnixSocket {
  /// Returns a connected descriptor. A Unix socket connects at once or not at all.
  static func connect(to path: String) throws -> NIOBSDSocket.Handle {
    let address = try SocketAddress(unixDomainSocketPath: path)
    // Non-blocking, in case the backend's queue is full.
    let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    let descriptor = socket(AF_UNIX, Int32(type), 0)
    guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
    let code = address.withSockAddr { Glibc.connect(descriptor, $0, socklen_t($1)) }
    guard code == 0 else {
      let error = IOError(errnoCode: errno, reason: "connect")
      close(descriptor)
      throw error
    }
    return descriptor
  }
}

extension ChannelHandlerContext {
  /// Begins or stops reading from the peer.
  public func setReading(_ isWanted: Bool) {
    try? channel.syncOptions?.setOption(.autoRead, value: isWanted)
    if isWanted { read() }
  }

  /// Completes the read of an HTTP/2 connection that has ended within it, once all that it leads to is done.
  ///
  /// NIO's codec keeps the streams of a read until that is complete, and they keep the codec, the channel and what they
  /// have read. A socket that is closed within a read completes none, so that each such connection would leak.
  public func completeReadLater() {
    eventLoop.assumeIsolated().execute { self.fireChannelReadComplete() }
  }
}

extension Error {
  /// Whether NIO's HTTP/2 codec throws it for the peer's fault on one stream, which the codec then resets. It may throw
  /// the same for the connection, after a GOAWAY.
  public var mayConcernOneHTTP2Stream: Bool {
    switch self {
    // A window that grows by nothing, or beyond its maximum (RFC 9113, sections 6.9 and 6.9.1).
    case is NIOHTTP2Errors.InvalidWindowIncrementSize, is NIOHTTP2Errors.InvalidFlowControlWindowSize: true
    // DATA beyond the stream's window, frames in a wrong order, and a second HEADERS that does not end the stream.
    case is NIOHTTP2Errors.FlowControlViolation, is NIOHTTP2Errors.BadStreamStateTransition,
      is NIOHTTP2Errors.TrailersWithoutEndStream:
      true
    default: false
    }
  }
}
