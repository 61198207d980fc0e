import Idempotency
import Loop
import NIOCore
import NIOPosix
import NIOSSL

/// Makes connections to a backend; its name is looked up anew for each.
enum PlainConnector {
  static func connect(to settings: UpstreamSettings, of pool: PlainPool) -> EventLoopFuture<PlainConnection> {
    let context = pool.upstream.context
    let unix: UnixSocket?
    if case .unix(let path) = settings.address {
      do { unix = try UnixSocket(path: path) } catch { return context.loop.makeFailedFuture(error) }
    } else {
      unix = nil
    }
    let bootstrap = ClientBootstrap(group: context.loop)
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
          if let tls = settings.tls {
            try channel.pipeline.syncOperations.addHandler(try handler(for: tls, of: settings.address))
          }
          try channel.pipeline.syncOperations.addHandler(PlainConnection(pool: pool, unix: unix))
        }
      }
    let channel =
      switch settings.address {
      case .tcp(let host, let port):
        bootstrap.channelOption(.tcpOption(.tcp_nodelay), value: 1).connect(host: host, port: port)
      case .unix: bootstrap.withConnectedSocket(unix?.descriptor ?? -1)
      }
    let connected =
      settings.tls == nil
      ? channel
      : channel.flatMap { channel in
        context.loop.assertInEventLoop()
        guard let connection = try? channel.pipeline.syncOperations.handler(type: PlainConnection.self) else {
          return channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
        }
        return connection.whenSecure(on: channel.eventLoop).map { channel }
      }
    let outcome = limited(connected, to: settings.connectTimeout)
    if settings.tls != nil {
      // A backend that takes the connection and never agrees on anything.
      channel.whenSuccess { channel in outcome.whenFailure { _ in channel.close(promise: nil) } }
    }
    return outcome.flatMapThrowing { channel in
      try channel.pipeline.syncOperations.handler(type: PlainConnection.self)
    }
  }

  /// TLS with a backend, in HTTP/1.1 alone: what switches protocols cannot go through libcurl.
  private static func handler(
    for tls: UpstreamSettings.TLS, of address: UpstreamSettings.Address
  ) throws -> NIOSSLClientHandler {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.minimumTLSVersion = .tlsv12
    configuration.applicationProtocols = ["http/1.1"]
    if let ca = tls.ca { configuration.trustRoots = .file(ca) }
    if let certificate = tls.certificate, let key = tls.key {
      configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(certificate).map { .certificate($0) }
      configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
    }
    var name = tls.serverName
    if name == nil, case .tcp(let host, _) = address { name = host }
    // An address is verified as such, but never sent as a name (RFC 6066, section 3).
    let isAddress = name.map { (try? SocketAddress(ipAddress: $0, port: 0)) != nil } ?? true
    return try NIOSSLClientHandler(
      context: try NIOSSLContext(configuration: configuration), serverHostname: isAddress ? nil : name)
  }

  /// NIO's own time-out is that of one address and does not count the look-up of the name.
  private static func limited(
    _ connecting: EventLoopFuture<any Channel>, to span: Milliseconds
  ) -> EventLoopFuture<any Channel> {
    let loop = connecting.eventLoop
    let first = loop.makePromise(of: (any Channel).self)
    let timer = loop.assumeIsolated().scheduleTask(in: .milliseconds(max(1, span.count))) {
      first.fail(ConnectTimeout())
    }
    connecting.whenComplete { result in
      timer.cancel()
      switch result {
      case .success(let channel):
        // Late, it finds nobody who would know of it any more.
        first.futureResult.whenFailure { _ in channel.close(promise: nil) }
        first.succeed(channel)
      case .failure(let error): first.fail(error)
      }
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
