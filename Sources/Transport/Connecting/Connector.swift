import Idempotency
import NIOCore
import Platform
import Synchronization
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

/// A one-shot result, which may be awaited before or after it is set. Confined to its loop.
final class OneShot {
  private var result: Result<Void, any Error>?
  private var promise: EventLoopPromise<Void>?

  var isSet: Bool { result != nil }

  /// Sets the result. Only the first call has an effect.
  func set(_ result: Result<Void, any Error>) {
    guard self.result == nil else { return }
    self.result = result
    promise?.completeWith(result)
  }

  /// Returns a future of the result. Call it at most once.
  func wait(on loop: any EventLoop) -> EventLoopFuture<Void> {
    invariant(promise == nil, "a result is awaited twice")
    let promise = loop.makePromise(of: Void.self)
    self.promise = promise
    if let result { promise.completeWith(result) }
    return promise.futureResult
  }
}

/// The backends to which the last attempt to connect has failed. Shared by all event loops.
public final class UnreachedBackends: Sendable {
  /// The end of the latest attempt to connect.
  public struct Failure: Sendable, Equatable {
    public let reason: String
    /// The time of the failure, in milliseconds since 1970.
    public let time: Int64
  }

  private let failures = Mutex<[String: Failure]>([:])
  /// Whether there is any failure. While there is none, a connection takes no lock.
  private let isAny = Atomic<Bool>(false)

  public init() {}

  /// The failure of an upstream's backend; `nil` if it was reached when a connection was last tried, or none was tried.
  public func failure(of name: String) -> Failure? { failures.withLock { $0[name] } }

  func failed(_ name: String, because reason: String) {
    failures.withLock { failures in
      failures[name] = Failure(reason: reason, time: WallClock.milliseconds())
      isAny.store(true, ordering: .relaxed)
    }
  }

  func connected(_ name: String) {
    guard isAny.load(ordering: .relaxed) else { return }
    failures.withLock { failures in
      failures[name] = nil
      isAny.store(!failures.isEmpty, ordering: .relaxed)
    }
  }
}

/// The versions of HTTP that the connections of a pool may use.
enum HTTPVersions {
  case http1
  /// The version that ALPN chooses.
  case negotiated
  case http2

  init(for request: UpstreamRequest) {
    // HTTP/2 has no `Upgrade`.
    let wanted = request.upgrade == nil ? request.upstream.http2 : .off
    switch wanted {
    case .off: self = .http1
    // Without TLS there is no ALPN.
    case .auto:
      // A client that authenticates its connection needs one of its own.
      let fits = request.upstream.tls != nil && request.fitsHTTP2 && !request.bindsConnection
      self = fits ? .negotiated : .http1
    case .priorKnowledge: self = .http2
    }
  }

  /// The protocols that are offered by ALPN.
  var protocols: [String] {
    switch self {
    case .http1: ["http/1.1"]
    case .negotiated: ["h2", "http/1.1"]
    case .http2: ["h2"]
    }
  }
}
