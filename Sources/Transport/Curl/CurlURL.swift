import CCurl
import Idempotency

/// Owns a backend's URL in libcurl's parsed form, so that no transfer parses it anew (about 1 µs each). Freed once.
struct CurlURL: ~Copyable {
  let raw: OpaquePointer

  /// A malformed host makes an empty URL: its transfers fail before anything is sent.
  init(_ address: UpstreamSettings.Address) {
    guard let raw = curl_url() else { fatalError("libcurl is out of memory") }
    self.raw = raw
    curl_url_set(raw, CURLUPART_URL, Self.text(address), 0)
  }

  deinit { curl_url_cleanup(raw) }

  private static func text(_ address: UpstreamSettings.Address) -> String {
    switch address {
    case .tcp(let host, let port):
      let isBareIPv6 = host.contains(":") && !host.hasPrefix("[")
      return "http://\(isBareIPv6 ? "[\(host)]" : host):\(port)/"
    case .unix:
      return "http://localhost/"
    }
  }
}
