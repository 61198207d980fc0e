import Idempotency
import Logging
import Loop
import NIOCore

/// The backend's side: each upstream is spoken to in the cheapest way that can do what its settings ask for.
package final class HTTPUpstream: Upstream {
  private let native: NativeUpstream
  private let curl: CurlUpstream

  /// - Parameters:
  ///   - context: the event loop that this is confined to; `begin` and `shutdown` are called on it.
  ///   - loops: how many there are; each gets its share of an upstream's `maxConnections`.
  package init(
    context: EventLoopContext, loops: Int, watcher: CurlWatcher, logger: Logger
  ) throws(TransportError) {
    native = NativeUpstream(context: context, loops: loops, logger: logger)
    curl = try CurlUpstream(context: context, loops: loops, watcher: watcher, logger: logger)
  }

  /// Of both ways together; read on the loop.
  package var counters: UpstreamCounters { native.counters + curl.counters }

  package func begin(_ request: UpstreamRequest) -> HTTPExchange {
    // libcurl cannot switch protocols.
    request.upstream.tls != nil && request.upstream.http2 == .off && request.upgrade == nil
      ? .curl(curl.begin(request)) : .native(native.begin(request))
  }

  /// Cuts what is still under way and closes every connection.
  package func shutdown() {
    native.shutdown()
    curl.shutdown()
  }
}

/// An exchange of either kind.
package enum HTTPExchange: UpstreamExchange {
  case native(NativeExchange)
  case curl(CurlExchange)

  package func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead {
    switch self {
    case .native(let exchange): try await exchange.head(within: span)
    case .curl(let exchange): try await exchange.head(within: span)
    }
  }

  package func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected
  {
    switch self {
    case .native(let exchange): try await exchange.collect(upTo: limit, within: span)
    case .curl(let exchange): try await exchange.collect(upTo: limit, within: span)
    }
  }

  package func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer? {
    switch self {
    case .native(let exchange): try await exchange.read(within: span)
    case .curl(let exchange): try await exchange.read(within: span)
    }
  }

  package func takeReady() -> (bytes: ByteBuffer, isEnd: Bool) {
    switch self {
    case .native(let exchange): exchange.takeReady()
    case .curl(let exchange): exchange.takeReady()
    }
  }

  package var trailers: ByteBuffer {
    switch self {
    case .native(let exchange): exchange.trailers
    case .curl(let exchange): exchange.trailers
    }
  }

  package func tunnel(_ bytes: any RequestBodyStream) {
    switch self {
    case .native(let exchange): exchange.tunnel(bytes)
    case .curl(let exchange): exchange.tunnel(bytes)
    }
  }

  package func close() {
    switch self {
    case .native(let exchange): exchange.close()
    case .curl(let exchange): exchange.close()
    }
  }
}
