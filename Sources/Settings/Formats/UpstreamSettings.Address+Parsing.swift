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
