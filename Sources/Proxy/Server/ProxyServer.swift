import Idempotency
import Logging
import NIOCore
import NIOSSL
import Platform
import Synchronization
import TLS
import Telemetry
import Wire

/// The clients' side of the proxy: its listeners, and the workers that share their connections.
public final class ProxyServer<Store: RecordStore, Backend: Upstream>: Sendable {
  private let workers: [Worker<Store, Backend>]
  private let environment: ProxyEnvironment
  private let group: any EventLoopGroup
  /// The certificates of the listeners.
  private let certificates = Mutex<[ServerCertificate]>([])

  /// - Parameters:
  ///   - workers: One for each event loop of the group.
  public init(
    workers: [Worker<Store, Backend>], environment: ProxyEnvironment, group: any EventLoopGroup
  ) {
    self.workers = workers
    self.environment = environment
    self.group = group
  }

  /// Renews the leases of all claims that are held at once. Safe from any thread.
  public func renewLeases() {
    for worker in workers { worker.context.loop.execute { worker.renewLeases() } }
  }

  /// Binds the listener's address without accepting connections yet. Throws if the address is not available.
  public func bind(_ listener: Listener) async throws -> any Channel {
    if let certificate = listener.certificate { certificates.withLock { $0.append(certificate) } }
    let backlog: Int32 = 4096
    switch listener.address {
    case .tcp(let host, let port):
      return try await listen(at: .tcp(host: host, port: port), backlog, listener)
    case .unix(let path):
      let socket = try UnixListenerSocket(path: path, mode: listener.mode, backlog: backlog)
      let channel = try await listen(at: .bound(socket.descriptor), backlog, listener)
      channel.closeFuture.whenComplete { _ in socket.removeFile() }
      return channel
    }
  }

  private func listen(
    at place: BoundListener.Place, _ backlog: Int32, _ listener: Listener
  ) async throws -> any Channel {
    let bound = BoundListener(at: place, backlog: backlog, reads: ClientReadSizes()) { [self] in
      try accept($0, at: listener)
    }
    return try await workers[0].context.sockets.listen(bound, on: group).get()
  }

  /// Accepts connections from now on, beginning with those that wait.
  public func startAccepting(on channel: any Channel) async throws {
    try await channel.setOption(.autoRead, value: true).get()
  }

  private func accept(_ channel: any Channel, at listener: Listener) throws {
    guard let downstream = workers.first(where: { $0.context.loop === channel.eventLoop })?.downstream else {
      invariantBroken("a connection on a loop without worker")
    }
    environment.counters.add(.connections)
    let open = environment.counters.change(.openConnections, by: 1)
    invariant(open > 0, "more connections have ended than were accepted")
    // A connection that ends before NIO has registered it becomes neither active nor inactive.
    channel.closeFuture.whenComplete { [environment] _ in
      environment.counters.change(.openConnections, by: -1)
    }
    let limit = downstream.limits.maxConnections
    let mayEnter = !environment.isDraining && (open <= limit || downstream.closeResting())
    guard mayEnter else {
      // Before a TLS handshake the client would understand no response.
      let getsResponse = listener.certificate == nil && open <= limit + RefusedConnection.maxResponses
      return try refuse(channel, getsResponse: getsResponse)
    }
    // Reset before it was accepted: nobody would get a response, and without its address it would pass for a client of
    // a Unix socket.
    if channel.remoteAddress == nil, !listener.isUnix {
      return try refuse(channel, getsResponse: false)
    }
    let address = channel.remoteAddress?.ipAddress ?? ""
    let pipeline = channel.pipeline.syncOperations
    guard listener.proxyProtocol || listener.certificate != nil else {
      let connection = ClientConnection(downstream: downstream, peer: ClientPeer(address: address))
      return try pipeline.addHandler(connection)
    }
    if listener.proxyProtocol { try pipeline.addHandler(ProxyHeaderHandler()) }
    if let certificate = listener.certificate {
      try pipeline.addHandler(NIOSSLServerHandler(context: certificate.context))
    }
    try pipeline.addHandler(ClientNegotiation(downstream: downstream, address: address, to: listener))
  }

  private func refuse(_ channel: any Channel, getsResponse: Bool) throws {
    // Its handler may never be active: the client may be gone.
    environment.counters.add(.connectionsRefused)
    let refused = RefusedConnection(getsResponse: getsResponse, environment: environment)
    try channel.pipeline.syncOperations.addHandler(refused)
  }

  /// Reads the certificates' files again, for connections that begin from now on. Keeps a certificate whose files are
  /// bad, and logs the error.
  ///
  /// - Parameter onlyChanged: Skips files that look as they did the last time.
  public func reloadCertificates(onlyChanged: Bool = false) {
    for certificate in certificates.withLock({ $0 }) {
      let place: Logger.Metadata = ["certificate": "\(certificate.files.certificate)"]
      do throws(TLSFault) {
        if onlyChanged {
          guard try certificate.reloadIfChanged() else { continue }
        } else {
          try certificate.reload()
        }
        environment.logger.info("a certificate was read again", metadata: place)
        if let doubt = certificate.files.doubt() {
          environment.logger.warning("the certificate \(doubt)", metadata: place)
        }
      } catch {
        environment.logger.error(
          "a certificate could not be read again; the one before stays in use",
          metadata: place.merging(["error": "\(error)"]) { _, new in new })
      }
    }
  }

  /// Replaces the configuration of every request that begins after this has returned. No connection ends.
  ///
  /// Runs in progress are noted first if it has routes that may run requests without the store: a duplicate on a loop
  /// that has it must find those of loops that do not have it yet.
  public func adopt(_ configuration: ConfigurationSnapshot) async {
    let opensRoutes = configuration.routes.routes.contains { $0.policy.onStoreFailure == .open }
    if opensRoutes {
      environment.known.noteAllRoutes(true)
      for worker in workers {
        try? await worker.context.loop.submit { worker.noteRuns() }.get()
      }
    }
    defer { if opensRoutes { environment.known.noteAllRoutes(false) } }
    for worker in workers {
      try? await worker.context.loop.submit { worker.downstream.adopt(configuration) }.get()
    }
  }

  /// Closes idle connections; the others close after their responses. Called after the last accept.
  public func drain() async {
    environment.drain()
    for worker in workers {
      try? await worker.context.loop.submit { worker.drain() }.get()
    }
  }

  /// Whether every exchange has ended.
  public func isIdle() async -> Bool {
    for worker in workers {
      let isIdle = try? await worker.context.loop.submit { worker.isIdle }.get()
      if isIdle == false { return false }
    }
    return environment.counters[.inFlight] == 0
  }

  /// Marks the outcomes of unfinished exchanges as unknown.
  public func abandon() async {
    await withTaskGroup { group in
      for worker in workers {
        group.addTask(executorPreference: worker.context.executor) { await worker.abandon() }
      }
    }
  }
}

/// One address at which clients connect, with its certificate and protocols.
public struct Listener: Sendable, CustomStringConvertible {
  public var address: ServerAddress
  /// The permissions of a Unix socket, which decide who may connect.
  public var mode: Int
  /// The certificate; `nil` if connections are not encrypted.
  public var certificate: ServerCertificate?
  /// Whether each connection begins with a header of the PROXY protocol.
  public var proxyProtocol: Bool

  public init(
    _ address: ServerAddress, mode: Int, certificate: ServerCertificate? = nil, proxyProtocol: Bool = false
  ) {
    self.address = address
    self.mode = mode
    self.certificate = certificate
    self.proxyProtocol = proxyProtocol
  }

  var isUnix: Bool {
    if case .unix = address { true } else { false }
  }

  public var description: String { address.description }
}

/// Takes the PROXY header off a connection's first bytes, fires it as an event, and leaves the pipeline. Closes a
/// connection that does not begin with one.
final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private var inbound = ByteBuffer()
  private var isOver = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver else { return context.fireChannelRead(data) }
    var bytes = unwrapInboundIn(data)
    inbound.writeBuffer(&bytes)
    do throws(ProxyHeader.Malformed) {
      guard let header = try ProxyHeader.read(&inbound) else { return }
      isOver = true
      context.fireUserInboundEventTriggered(header)
      if inbound.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(inbound)) }
      context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    } catch {
      isOver = true
      context.close(promise: nil)
    }
  }
}

/// A connection over the limit: gets 503 at once, so that the client or a balancer can go elsewhere.
///
/// It must not wait in the kernel's queue: there the client learns nothing, and takes the place of others when there is
/// room again.
final class RefusedConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The number of refused connections that get a response at once. The others are closed without one, so that they
  /// cost no more than the accept.
  static var maxResponses: Int { 64 }
  /// The time that a client has to read the response: to close with its request unread would reset the connection.
  private static var lingering: TimeAmount { .seconds(1) }

  private let getsResponse: Bool
  private let environment: ProxyEnvironment

  init(getsResponse: Bool, environment: ProxyEnvironment) {
    self.getsResponse = getsResponse
    self.environment = environment
  }

  func channelActive(context: ChannelHandlerContext) {
    guard getsResponse else { return context.close(promise: nil) }
    let response = ResponseEncoder.whole(
      ClientResponse(.overloaded(environment.isDraining ? .draining : .busy)),
      minorVersion: 1,
      isClosing: true)
    let channel = context.channel
    context.writeAndFlush(wrapOutboundOut(response)).whenComplete { _ in
      channel.close(mode: .output, promise: nil)
    }
    context.eventLoop.scheduleTask(in: Self.lingering) { channel.close(promise: nil) }
  }

  /// Drops the request.
  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
