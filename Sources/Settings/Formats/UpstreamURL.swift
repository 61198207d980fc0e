import Idempotency
import Wire

/// The address of a backend, and whether it uses TLS.
struct UpstreamURL: Equatable {
  static let allowed = "http://host:port, https://host:port or unix:/path"

  var address: ServerAddress
  var isSecure = false

  static func parse(_ text: String) throws(Refusal) -> UpstreamURL {
    if text.hasPrefix("unix:") { return UpstreamURL(address: .unix(path: try UnixPath.parse(text))) }
    let isSecure = text.hasPrefix("https://")
    guard isSecure || text.hasPrefix("http://") else { throw Refusal("must be \(allowed)") }
    var authority = text.dropFirst((isSecure ? "https://" : "http://").count)
    if authority.hasSuffix("/") { authority.removeLast() }
    if authority.contains("@") { throw Refusal("must not hold a user: write \(allowed)") }
    if authority.contains(where: { "/?#".contains($0) }) {
      throw Refusal("must end after the port, since the request's own path is sent: write \(allowed)")
    }
    let address = try HostPort.parse(authority, port: isSecure ? 443 : 80)
    return UpstreamURL(address: .tcp(host: address.host, port: address.port), isSecure: isSecure)
  }
}

extension UpstreamSettings.Host {
  /// Parses `preserve`, `upstream`, or a value for the `Host` field: a name with or without a port.
  static func parse(_ text: String) throws(Refusal) -> Self {
    switch text {
    case "preserve": return .preserve
    case "upstream": return .upstream
    default:
      try require(
        text.hasPrefix("[") || HostPort.isName(String(text.prefix { $0 != ":" })),
        "must be preserve, upstream, or a name or an address with or without a port, such as orders.example.com or "
          + "[::1]:8080")
      _ = try HostPort.parse(text, port: 80)
      return .name(text)
    }
  }
}
