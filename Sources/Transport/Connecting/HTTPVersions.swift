import Idempotency

/// Which versions of HTTP the connections of a pool may speak.
enum HTTPVersions {
  case http1
  /// As ALPN has it.
  case negotiated
  case http2

  init(for request: UpstreamRequest) {
    // HTTP/2 has no protocols to switch to.
    let wanted = request.upgrade == nil ? request.upstream.http2 : .off
    switch wanted {
    case .off: self = .http1
    // Without TLS there is no ALPN.
    case .auto:
      // Who authenticates a connection needs one of its own.
      let fits = request.upstream.tls != nil && request.fitsHTTP2 && !request.bindsConnection
      self = fits ? .negotiated : .http1
    case .priorKnowledge: self = .http2
    }
  }

  /// What is offered by ALPN.
  var protocols: [String] {
    switch self {
    case .http1: ["http/1.1"]
    case .negotiated: ["h2", "http/1.1"]
    case .http2: ["h2"]
    }
  }
}
