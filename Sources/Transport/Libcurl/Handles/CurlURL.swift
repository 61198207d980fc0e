import CCurl
import Idempotency

/// Owns a backend's URL in libcurl's parsed form, so that no transfer parses it anew (about 1 µs each). Freed once.
struct CurlURL: ~Copyable {
  let raw: OpaquePointer

  /// A malformed host makes an empty URL: its transfers fail before anything is sent.
  init(_ settings: UpstreamSettings) {
    guard let raw = curl_url() else { fatalError("libcurl is out of memory") }
    self.raw = raw
    curl_url_set(raw, CURLUPART_URL, Self.text(settings), 0)
  }

  deinit { curl_url_cleanup(raw) }

  private static func text(_ settings: UpstreamSettings) -> String {
    let scheme = settings.tls == nil ? "http" : "https"
    return switch settings.address {
    case .tcp(let host, let port): "\(scheme)://\(settings.tls?.serverName ?? literal(host)):\(port)/"
    case .unix: "\(scheme)://localhost/"
    }
  }

  /// A host as it stands in a URL.
  static func literal(_ host: String) -> String {
    host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
  }
}
