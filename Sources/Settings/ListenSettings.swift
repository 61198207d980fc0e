/// Where clients are listened to.
package enum ListenSettings: Hashable, Sendable {
  /// Port 0 takes any free one.
  case tcp(host: String, port: Int)
  case unix(path: String)
}

extension ListenSettings {
  /// Reads an element of `listen`.
  static func read(_ section: Section) -> ListenSettings? {
    let address = section.member("address")
    if address == nil { section.refuseMissing("address", "is missing: write host:port or unix:/path") }
    section.refuseUnsupported("tls")
    section.refuseUnsupported("proxy_protocol", neutral: "false")
    return address?.parsed("host:port or unix:/path", parse)
  }

  private static func parse(_ text: String) throws(Refusal) -> ListenSettings {
    if text.hasPrefix("unix:") { return .unix(path: try UnixPath.parse(text)) }
    let address = try HostPort.parse(text, ports: 0...65535)
    return .tcp(host: address.host, port: address.port)
  }
}
