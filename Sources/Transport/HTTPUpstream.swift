import Idempotency
import Logging
import Loop
import NIOCore

/// The backend's side: each upstream is spoken to in the cheapest way that can do what its settings ask for.
public final class HTTPUpstream: Upstream {
  private let native: NativeUpstream
  private let curl: CurlUpstream

  /// - Parameters:
  ///   - context: the event loop that this is confined to; `begin` and `shutdown` are called on it.
  ///   - loops: how many there are; each gets its share of an upstream's `maxConnections`.
  public init(
    context: EventLoopContext, loops: Int, watcher: CurlWatcher, logger: Logger
  ) throws(TransportError) {
    native = NativeUpstream(context: context, loops: loops, logger: logger)
    curl = try CurlUpstream(context: context, loops: loops, watcher: watcher, logger: logger)
  }

  /// Of both ways together; read on the loop.
  public var counters: UpstreamCounters { native.counters + curl.counters }

  public func begin(_ request: UpstreamRequest) -> HTTPExchange {
    // libcurl cannot switch protocols.
    request.upstream.tls != nil && request.upstream.http2 == .off && request.upgrade == nil
      ? .curl(curl.begin(request)) : .native(native.begin(request))
  }

  /// Cuts what is still under way and closes every connection.
  public func shutdown() {
    native.shutdown()
    curl.shutdown()
  }
}

/// An exchange of either kind.
public enum HTTPExchange: UpstreamExchange {
  case native(NativeExchange)
  case curl(CurlExchange)

  public func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead {
    switch self {
    case .native(let exchange): try await exchange.head(within: span)
    case .curl(let exchange): try await exchange.head(within: span)
    }
  }

  public func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected
  {
    switch self {
    case .native(let exchange): try await exchange.collect(upTo: limit, within: span)
    case .curl(let exchange): try await exchange.collect(upTo: limit, within: span)
    }
  }

  public func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer? {
    switch self {
    case .native(let exchange): try await exchange.read(within: span)
    case .curl(let exchange): try await exchange.read(within: span)
    }
  }

  public func takeReady() -> (bytes: ByteBuffer, isEnd: Bool) {
    switch self {
    case .native(let exchange): exchange.takeReady()
    case .curl(let exchange): exchange.takeReady()
    }
  }

  public var trailers: ByteBuffer {
    switch self {
    case .native(let exchange): exchange.trailers
    case .curl(let exchange): exchange.trailers
    }
  }

  public func tunnel(_ bytes: any RequestBodyStream) {
    switch self {
    case .native(let exchange): exchange.tunnel(bytes)
    case .curl(let exchange): exchange.tunnel(bytes)
    }
  }

  public func close() {
    switch self {
    case .native(let exchange): exchange.close()
    case .curl(let exchange): exchange.close()
    }
  }
}
