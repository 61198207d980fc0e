import Idempotency
import NIOCore
import Platform
import TLS
import Wire

/// An established connection, with the protocol that the backend agreed to.
enum BackendConnection: Sendable {
  case exclusive(HTTP1Connection)
  case shared(HTTP2Connection)
}

/// The steps that establish a connection to a backend. Its name is resolved anew for each connection.
enum Connector {
  static func connect(for pool: ConnectionPool) -> EventLoopFuture<BackendConnection> {
    let settings = pool.settings
    let tls: ClientTLS?
    do { tls = try pool.client() } catch {
      return pool.upstream.context.loop.makeFailedFuture(error)
    }
    let channel = pool.upstream.context.sockets.connect(
      connection(for: pool, tls), on: pool.upstream.context.loop)
    let outcome = limited(channel.flatMap(whenGreeted), to: settings.connectTimeout)
    // Covers a backend that accepts the connection but never completes the handshake, and one whose name took too long
    // to resolve.
    channel.whenSuccess { channel in outcome.whenFailure { _ in channel.close(promise: nil) } }
    return outcome
  }

  private static func connection(for pool: ConnectionPool, _ tls: ClientTLS?) -> OutgoingConnection {
    let settings = pool.settings
    let place: OutgoingConnection.Place =
      switch settings.address {
      case .tcp(let host, let port): .tcp(host: host, port: port)
      case .unix(let path): .unix(path: path)
      }
    // `limited` decides. NIO's own time-out would fire before it reads after a pause of the process.
    let timeout = TimeAmount.milliseconds(settings.connectTimeout.count + 2 * Lateness.uploadGrace)
    var connection = OutgoingConnection(to: place, timeout: timeout) {
      try addHandlers(to: $0, of: pool, tls)
    }
    connection.options = [(.tcpOption(.tcp_nodelay), 1), (.tcpOption(userTimeout), silence(of: settings))]
    // Most responses fit in the minimum, which the allocator keeps in its cache of small blocks (up to 1032 bytes).
    connection.reads = AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 4096, maximum: 64 << 10)
    return connection
  }

  /// Adds the handlers of a new connection: those of TLS, if there is any, until the backend is verified.
  private static func addHandlers(to channel: any Channel, of pool: ConnectionPool, _ tls: ClientTLS?) throws
  {
    guard let tls else {
      return try start(on: channel, choice: nil, of: pool, try BackendSocket(below: channel, records: nil))
    }
    let records = TLSRecords()
    // The generation is read before the files that it counts.
    let socket = try BackendSocket(below: channel, records: records, generation: tls.generation)
    let handshake = BackendHandshake { channel, choice in
      try start(on: channel, choice: choice, of: pool, socket)
    }
    let handler = try tls.handler(for: pool.settings.address.host)
    try channel.pipeline.syncOperations.addHandlers([records, handler, handshake])
  }

  /// The Linux socket option `TCP_USER_TIMEOUT`: the maximum time that sent data may stay unacknowledged, in
  /// milliseconds.
  private static let userTimeout = NIOBSDSocket.Option(rawValue: 18)

  /// The value of `TCP_USER_TIMEOUT`. It is longer than any pause that a backend may make in reading, because the
  /// kernel also counts a window that the backend keeps closed.
  private static func silence(of settings: UpstreamSettings) -> SocketOptionValue {
    SocketOptionValue(min(max(60_000, settings.responseTimeout.count), 1 << 30))
  }

  /// Adds the HTTP handler to the end of the channel's pipeline.
  ///
  /// - Parameter choice: The protocol that the backend has chosen by ALPN. With prior knowledge of HTTP/2, none is
  ///   needed.
  private static func start(
    on channel: any Channel, choice: String?, of pool: ConnectionPool, _ socket: BackendSocket
  ) throws {
    if pool.versions == .http2 && choice ?? "h2" == "h2" || pool.versions == .negotiated && choice == "h2" {
      try HTTP2Connection.start(on: channel, of: pool, socket)
    } else {
      try channel.pipeline.syncOperations.addHandler(HTTP1Connection(pool: pool, socket: socket))
    }
  }

  private static func whenGreeted(_ channel: any Channel) -> EventLoopFuture<BackendConnection> {
    channel.eventLoop.assertInEventLoop()
    guard let handshake = try? channel.pipeline.syncOperations.handler(type: BackendHandshake.self) else {
      return whenReady(channel)
    }
    return handshake.whenDone(on: channel.eventLoop).flatMap { whenReady(channel) }
  }

  private static func whenReady(_ channel: any Channel) -> EventLoopFuture<BackendConnection> {
    let handlers = channel.pipeline.syncOperations
    if let shared = try? handlers.handler(type: HTTP2Connection.self) {
      return shared.whenReady(on: channel.eventLoop).map { .shared(shared) }
    }
    return channel.eventLoop.makeCompletedFuture {
      .exclusive(try handlers.handler(type: HTTP1Connection.self))
    }
  }

  /// Limits the time of connecting as a whole. NIO's own time-out applies to each address and does not include the
  /// resolution of the name.
  private static func limited<Outcome: Sendable>(
    _ connecting: EventLoopFuture<Outcome>, to span: Milliseconds
  ) -> EventLoopFuture<Outcome> {
    let loop = connecting.eventLoop.assumeIsolated()
    let first = connecting.eventLoop.makePromise(of: Outcome.self)
    var deadline = LateDeadline(in: max(1, span.count))
    var timer: Scheduled<Void>?
    func wait() {
      timer = loop.scheduleTask(in: .milliseconds(max(1, deadline.left()))) {
        if deadline.isOver() { first.fail(ConnectTimeout()) } else { wait() }
      }
    }
    wait()
    connecting.assumeIsolated().whenComplete { result in
      timer?.cancel()
      first.completeWith(result)
    }
    return first.futureResult
  }

  /// The cause as text, without the names of the functions that it passed through.
  static func reason(_ error: any Error) -> String {
    switch error.atFirstAddress {
    case is ConnectTimeout, ChannelError.connectTimeout: "connecting took too long"
    default: plainText(of: error)
    }
  }

  private struct ConnectTimeout: Error {}
}
