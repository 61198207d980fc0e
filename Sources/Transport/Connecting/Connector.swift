import Idempotency
import Loop
import NIOCore
import NIOPosix

/// A connection that stands, and over which the backend has agreed to speak.
enum BackendConnection: Sendable {
  case exclusive(HTTP1Connection)
  case shared(HTTP2Connection)
}

/// Makes connections to a backend; its name is looked up anew for each.
enum Connector {
  static func connect(for pool: ConnectionPool) -> EventLoopFuture<BackendConnection> {
    let loop = pool.upstream.context.loop
    let settings = pool.settings
    let bootstrap = ClientBootstrap(group: loop)
      .connectTimeout(.milliseconds(max(1, settings.connectTimeout.count)))
      // A second read would mostly find nothing.
      .channelOption(.maxMessagesPerRead, value: 1)
      // Most answers fit in the least, which the allocator keeps in its cache of small blocks (up to 1032 bytes).
      .channelOption(
        .recvAllocator,
        value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 4096, maximum: 64 << 10)
      )
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard let tls = pool.tls else {
            return try start(on: channel, choice: nil, of: pool, nil)
          }
          let records = TLSRecords()
          let greeting = BackendGreeting { channel, choice in
            try start(on: channel, choice: choice, of: pool, records)
          }
          try channel.pipeline.syncOperations.addHandlers([records, try tls.handler(), greeting])
        }
      }
    let channel: EventLoopFuture<any Channel>
    switch settings.address {
    case .tcp(let host, let port):
      channel = bootstrap.channelOption(.tcpOption(.tcp_nodelay), value: 1)
        .channelOption(.tcpOption(userTimeout), value: silence(of: settings))
        .connect(host: host, port: port)
    case .unix(let path):
      do { channel = bootstrap.withConnectedSocket(try UnixSocket.connect(to: path)) } catch {
        return loop.makeFailedFuture(error)
      }
    }
    let outcome = limited(channel.flatMap(whenGreeted), to: settings.connectTimeout)
    // A backend that takes the connection and never agrees on anything, and one that took too long to be found.
    channel.whenSuccess { channel in outcome.whenFailure { _ in channel.close(promise: nil) } }
    return outcome
  }

  /// `TCP_USER_TIMEOUT`: how long what was sent may stay without the peer's word for it, in milliseconds.
  private static let userTimeout = NIOBSDSocket.Option(rawValue: 18)

  /// Longer than whatever a backend may take to read on: a window that it keeps closed counts as its silence.
  private static func silence(of settings: UpstreamSettings) -> SocketOptionValue {
    SocketOptionValue(min(max(60_000, settings.responseTimeout.count), 1 << 30))
  }

  /// Adds what speaks to the backend to the end of the channel's pipeline.
  ///
  /// - Parameter choice: what the backend has chosen by ALPN. Who knew before that it speaks HTTP/2 needs none.
  private static func start(
    on channel: any Channel, choice: String?, of pool: ConnectionPool, _ records: TLSRecords?
  ) throws {
    let socket = try BackendSocket(below: channel, records: records)
    if pool.versions == .http2 && choice ?? "h2" == "h2" || pool.versions == .negotiated && choice == "h2" {
      try HTTP2Connection.start(on: channel, of: pool, socket)
    } else {
      try channel.pipeline.syncOperations.addHandler(HTTP1Connection(pool: pool, socket: socket))
    }
  }

  private static func whenGreeted(_ channel: any Channel) -> EventLoopFuture<BackendConnection> {
    channel.eventLoop.assertInEventLoop()
    guard let greeting = try? channel.pipeline.syncOperations.handler(type: BackendGreeting.self) else {
      return whenReady(channel)
    }
    return greeting.whenDone(on: channel.eventLoop).flatMap { whenReady(channel) }
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

  /// NIO's own time-out is that of one address and does not count the look-up of the name.
  private static func limited<Outcome: Sendable>(
    _ connecting: EventLoopFuture<Outcome>, to span: Milliseconds
  ) -> EventLoopFuture<Outcome> {
    let loop = connecting.eventLoop
    let first = loop.makePromise(of: Outcome.self)
    let timer = loop.assumeIsolated().scheduleTask(in: .milliseconds(max(1, span.count))) {
      first.fail(ConnectTimeout())
    }
    connecting.whenComplete { result in
      timer.cancel()
      first.completeWith(result)
    }
    return first.futureResult
  }

  /// The cause in words, without the names of functions that it came through.
  static func reason(_ error: any Error) -> String {
    switch error {
    case let error as NIOConnectionError:
      error.connectionErrors.first.map { reason($0.error) } ?? "its name is not known"
    case is ConnectTimeout: "connecting took too long"
    case ChannelError.connectTimeout: "connecting took too long"
    case let error as IOError: String(cString: strerror(error.errnoCode))
    default: "\(error)"
    }
  }

  private struct ConnectTimeout: Error {}
}
