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
