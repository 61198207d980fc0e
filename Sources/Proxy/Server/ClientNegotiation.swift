import Glibc
import Idempotency
import NIOCore
import NIOSSL
import NIOTLS
import Platform
import TLS
import Telemetry
import Wire

/// The beginning of a client's connection: awaits the PROXY header and the TLS handshake, which state the client's
/// address and protocol, then leaves the connection to that protocol's handler.
///
/// Confined to its event loop, hence `@unchecked Sendable`.
final class ClientNegotiation: ChannelInboundHandler, RemovableChannelHandler, DownstreamConnection,
  @unchecked Sendable
{
  typealias InboundIn = ByteBuffer

  private let downstream: Downstream
  private let isSecure: Bool
  /// The name of the listener's authority for client certificates.
  private let authority: String?
  private var awaitsHeader: Bool
  private var awaitsHandshake: Bool
  private var address: String
  private var isUnknown = false
  private var isHTTP2 = false
  private var context: ChannelHandlerContext?
  /// Its number among its loop's connections.
  private var number = 0
  private var timer: LoopTimers.Token?
  private var place: (room: HandshakeRoom, ticket: UInt64)?

  init(downstream: Downstream, address: String, to listener: Listener) {
    self.downstream = downstream
    self.address = address
    isSecure = listener.certificate != nil
    authority = listener.certificate?.files.clientCAName
    awaitsHandshake = isSecure
    awaitsHeader = listener.proxyProtocol
  }

  func handlerAdded(context: ChannelHandlerContext) {
    downstream.context.loop.assertInEventLoop()
    self.context = context
    number = downstream.connections.enter(self)
    acquirePlace(context)
    timer = downstream.context.timers.start(milliseconds: downstream.limits.headerTimeout.count) {
      [weak self] in
      self?.timer = nil
      self?.context?.close(promise: nil)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case let header as ProxyHeader:
      switch header {
      case .client(let address): self.address = address
      // Some balancers also send their clients' requests on connections that they call their own.
      case .unknown, .local: isUnknown = true
      }
      awaitsHeader = false
      if awaitsHandshake { acquirePlace(context) }
    case TLSUserEvent.handshakeCompleted(let agreed):
      isHTTP2 = agreed == "h2"
      awaitsHandshake = false
    case ChannelEvent.inputClosed:
      return context.close(promise: nil)
    default:
      return context.fireUserInboundEventTriggered(event)
    }
    if !awaitsHeader, !awaitsHandshake { start(context) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  /// Handles the end of the negotiation, or of the connection: one that another takes the place of before NIO has
  /// registered it does not become inactive.
  func handlerRemoved(context: ChannelHandlerContext) {
    if let timer { downstream.context.timers.stop(timer) }
    timer = nil
    releasePlace()
    self.context = nil
    downstream.connections.leave(number)
  }

  func drain() { context?.close(promise: nil) }

  /// Acquires a place among the unfinished connections, anew once the PROXY header has stated the client.
  private func acquirePlace(_ context: ChannelHandlerContext) {
    releasePlace()
    let environment = downstream.environment
    let room = awaitsHeader ? environment.proxyHeaders : environment.handshakes
    let ticket = room.acquire(
      context.channel, from: client, maxConnections: downstream.limits.maxConnections)
    place = (room, ticket)
  }

  private func releasePlace() {
    if let place { place.room.release(place.ticket) }
    place = nil
  }

  /// The address of the one client that the connection is known to be from; `nil` for a unix socket, for a load
  /// balancer before its header, and for a trusted proxy.
  private var client: String? {
    guard !awaitsHeader, !isUnknown, !address.isEmpty else { return nil }
    return downstream.configuration.trustedProxies.trusts(IPAddress(address)) ? nil : address
  }

  private func start(_ context: ChannelHandlerContext) {
    let peer = ClientPeer(
      address: address, isUnknown: isUnknown, isSecure: isSecure, certificate: certificate(context))
    do {
      if isHTTP2 {
        try ClientSession.start(on: context.channel, downstream: downstream, peer: peer)
      } else {
        let connection = ClientConnection(downstream: downstream, peer: peer)
        try context.pipeline.syncOperations.addHandler(connection)
      }
      context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    } catch {
      context.close(promise: nil)
    }
  }

  private func certificate(_ context: ChannelHandlerContext) -> CertificateIdentity? {
    guard isSecure, let shown = try? context.pipeline.syncOperations.nioSSL_peerCertificate() else {
      return nil
    }
    return CertificateIdentity(shown, authority: authority)
  }
}

/// The reason for which a unix socket's path cannot be taken.
public struct UnixPathTaken: Error, CustomStringConvertible {
  public enum Reason: Sendable { case isServed, isNoSocket }

  public let reason: Reason

  public var description: String {
    switch reason {
    case .isServed: "another process listens there; stop it first, or give this one a path of its own"
    case .isNoSocket: "there is a file that is no socket; remove it, or choose another path"
    }
  }
}

/// A listening unix socket and its file. Never takes the file from a process that still serves it, and removes it at
/// the end only if it is still this socket's.
struct UnixListenerSocket: Sendable {
  let descriptor: CInt
  private let path: String
  private let identity: FileStatus.Identity

  /// Binds the path and listens there. Replaces a socket that nobody serves: a killed process left it.
  ///
  /// - Parameter mode: The socket's permissions, in force before anybody can connect.
  init(path: String, mode: Int, backlog: Int32) throws {
    try Self.removeLeftover(path)
    let descriptor = try Self.socket()
    var isBound = false
    do {
      try Self.withAddress(path) { address, length in
        try Self.check(bind(descriptor, address, length), "bind")
      }
      isBound = true
      try Self.check(chmod(path, mode_t(mode)), "chmod")
      try Self.check(listen(descriptor, backlog), "listen")
      guard let file = Self.file(path) else { throw IOError(errnoCode: errno, reason: "lstat") }
      identity = file.identity
    } catch {
      close(descriptor)
      if isBound { unlink(path) }
      throw error
    }
    self.path = path
    self.descriptor = descriptor
  }

  /// Removes the file, unless another process has put its own in the place.
  func removeFile() {
    if Self.file(path)?.identity == identity { unlink(path) }
  }

  private static func removeLeftover(_ path: String) throws {
    guard let file = file(path) else { return }
    guard file.isSocket else { throw UnixPathTaken(reason: .isNoSocket) }
    guard try !isServed(path) else { throw UnixPathTaken(reason: .isServed) }
    unlink(path)
  }

  /// Whether a process listens there, also one whose queue is full or that refuses this process.
  private static func isServed(_ path: String) throws -> Bool {
    let descriptor = try socket()
    defer { close(descriptor) }
    let status = try withAddress(path) { connect(descriptor, $0, $1) }
    return status == 0 || (errno != ECONNREFUSED && errno != ENOENT)
  }

  private static func file(_ path: String) -> FileStatus? { FileStatus(path: path, followsLinks: false) }

  private static func socket() throws -> CInt {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = Glibc.socket(AF_UNIX, kind, 0)
    try check(descriptor, "socket")
    return descriptor
  }

  private static func check(_ status: CInt, _ call: String) throws {
    guard status >= 0 else { throw IOError(errnoCode: errno, reason: call) }
  }

  private static func withAddress<Result>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
  ) throws -> Result {
    // `SocketAddress` checks that the path is short enough for a socket.
    try SocketAddress(unixDomainSocketPath: path).withSockAddr { try body($0, socklen_t($1)) }
  }
}
