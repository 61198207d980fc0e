import Idempotency

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
