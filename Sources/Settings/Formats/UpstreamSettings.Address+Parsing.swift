import Idempotency

extension UpstreamSettings.Address {
  static func parse(_ text: String) throws(Refusal) -> Self {
    let allowed = "http://host:port or unix:/path"
    if text.hasPrefix("unix:") { return .unix(path: try UnixPath.parse(text)) }
    if text.hasPrefix("https://") { throw Refusal("https:// is not supported yet; write \(allowed)") }
    guard text.hasPrefix("http://") else { throw Refusal("must be \(allowed)") }
    var authority = text.dropFirst("http://".count)
    if authority.hasSuffix("/") { authority.removeLast() }
    if authority.contains("@") { throw Refusal("must not hold a user: write \(allowed)") }
    if authority.contains(where: { "/?#".contains($0) }) {
      throw Refusal("must end after the port, since the request's own path is sent: write \(allowed)")
    }
    let address = try HostPort.parse(authority, port: 80)
    return .tcp(host: address.host, port: address.port)
  }
}

/// Addresses of Unix sockets, as in `unix:/run/semel.sock`.
enum UnixPath {
  static func parse(_ text: String) throws(Refusal) -> String {
    let path = text.dropFirst("unix:".count)
    // sockaddr_un has 108 bytes on Linux, 104 elsewhere, and a NUL ends the path.
    guard path.hasPrefix("/"), path.utf8.count < 104, !path.utf8.contains(0) else {
      throw Refusal("must have an absolute path of at most 103 bytes, such as unix:/run/semel.sock")
    }
    return String(path)
  }
}
