import Idempotency
import Logging
import Loop
import NIOCore

/// The backend's side: each upstream is spoken to in the cheapest way that can do what its settings ask for.
package final class HTTPUpstream: Upstream {
  private let plain: PlainUpstream
  private let curl: CurlUpstream

  /// - Parameters:
  ///   - context: the event loop that this is confined to; `begin` and `shutdown` are called on it.
  ///   - loops: how many there are; each gets its share of an upstream's `maxConnections`.
  package init(
    context: EventLoopContext, loops: Int, watcher: CurlWatcher, logger: Logger
  ) throws(TransportError) {
    plain = PlainUpstream(context: context, loops: loops, logger: logger)
    curl = try CurlUpstream(context: context, loops: loops, watcher: watcher, logger: logger)
  }

  /// Of both ways together; read on the loop.
  package var counters: UpstreamCounters { plain.counters + curl.counters }

  package func begin(_ request: UpstreamRequest) -> HTTPExchange {
    // libcurl cannot switch protocols.
    request.upstream.isPlain || request.upgrade != nil
      ? .plain(plain.begin(request)) : .curl(curl.begin(request))
  }

  /// Cuts what is still under way and closes every connection.
  package func shutdown() {
    plain.shutdown()
    curl.shutdown()
  }
}

/// An exchange of either kind.
package enum HTTPExchange: UpstreamExchange {
  case plain(PlainExchange)
  case curl(CurlExchange)

  package func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead {
    switch self {
    case .plain(let exchange): try await exchange.head(within: span)
    case .curl(let exchange): try await exchange.head(within: span)
    }
  }

  package func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected
  {
    switch self {
    case .plain(let exchange): try await exchange.collect(upTo: limit, within: span)
    case .curl(let exchange): try await exchange.collect(upTo: limit, within: span)
    }
  }

  package func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer? {
    switch self {
    case .plain(let exchange): try await exchange.read(within: span)
    case .curl(let exchange): try await exchange.read(within: span)
    }
  }

  package func takeReady() -> (bytes: ByteBuffer, isEnd: Bool) {
    switch self {
    case .plain(let exchange): exchange.takeReady()
    case .curl(let exchange): exchange.takeReady()
    }
  }

  package var trailers: ByteBuffer {
    switch self {
    case .plain(let exchange): exchange.trailers
    case .curl(let exchange): exchange.trailers
    }
  }

  package func tunnel(_ bytes: any RequestBodyStream) {
    switch self {
    case .plain(let exchange): exchange.tunnel(bytes)
    case .curl(let exchange): exchange.tunnel(bytes)
    }
  }

  package func close() {
    switch self {
    case .plain(let exchange): exchange.close()
    case .curl(let exchange): exchange.close()
    }
  }
}
