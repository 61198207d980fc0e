import Idempotency

extension UpstreamSettings {
  /// Reads a member of `upstreams`; `nil` where its address is not known.
  static func read(_ section: Section, name: String) -> UpstreamSettings? {
    let url = section.member("url")
    if url == nil { section.refuseMissing("url", "is missing: write http://host:port or unix:/path") }
    let address = url?.parsed("http://host:port or unix:/path", Address.parse)
    var settings = UpstreamSettings(name: name, address: address ?? .unix(path: ""))
    if let host = section.member("host")?.parsed("preserve, upstream or a name", Host.parse) {
      settings.host = host
    }
    section.refuseUnsupported("http2", neutral: "off")
    section.refuseUnsupported("tls")
    section.duration("connect_timeout", into: &settings.connectTimeout, atLeast: 1)
    section.duration("response_timeout", into: &settings.responseTimeout, atLeast: 1)
    section.duration("settle", into: &settings.settle)
    section.duration("idle_timeout", into: &settings.idleTimeout)
    section.integer("connect_retries", into: &settings.connectRetries, in: 0...100)
    section.integer("max_connections", into: &settings.maxConnections, in: 1...1_000_000)
    return address == nil ? nil : settings
  }
}
