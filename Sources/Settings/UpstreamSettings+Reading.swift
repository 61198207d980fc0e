import Idempotency
import Wire

extension UpstreamSettings {
  /// Reads a member of `upstreams`; `nil` if its address is missing or invalid.
  static func read(_ section: Section, name: String) -> UpstreamSettings? {
    let url = section.member("url")
    if url == nil { section.refuseMissing("url", "is missing: write \(UpstreamURL.allowed)") }
    let parsed = url?.parsed(UpstreamURL.allowed, UpstreamURL.parse)
    var settings = UpstreamSettings(name: name, address: parsed?.address ?? .unix(path: ""))
    if let host = section.member("host")?.parsed("preserve, upstream or a name", Host.parse) {
      settings.host = host
    }
    section.choice("http2", into: &settings.http2)
    if settings.http2 == .auto, parsed?.isSecure == false {
      section["http2"]?.warn(
        "has no effect without TLS: it goes by ALPN, which belongs to https://; write prior_knowledge for a backend "
          + "that takes HTTP/2 in clear, or take it out")
    }
    settings.readTLS(section, isSecure: parsed?.isSecure)
    section.duration("connect_timeout", into: &settings.connectTimeout, atLeast: 1)
    section.duration("response_timeout", into: &settings.responseTimeout, atLeast: 1)
    section.duration("settle", into: &settings.settle)
    section.duration("idle_timeout", into: &settings.idleTimeout)
    section.integer("connect_retries", into: &settings.connectRetries, in: 0...100)
    section.integer("max_connections", into: &settings.maxConnections, in: 1...1_000_000)
    return parsed == nil ? nil : settings
  }

  /// Reads the TLS settings.
  ///
  /// - Parameter isSecure: Whether the address is an `https` one; `nil` if it is missing or invalid.
  private mutating func readTLS(_ section: Section, isSecure: Bool?) {
    if isSecure == true { tls = ClientTLSFiles() }
    guard let member = section.member("tls"), let files = ClientTLSFiles.read(member) else { return }
    if isSecure == false { member.refuse("is for https:// alone; take it out") }
    tls = files
  }
}

extension UpstreamSettings {
  var shown: Shown {
    [
      "url": .text(url),
      "host": .text(host.text),
      "http2": .word(http2),
      "tls": tls?.shown,
      "connect_timeout": .span(connectTimeout),
      "response_timeout": .span(responseTimeout),
      "settle": .span(settle),
      "idle_timeout": .span(idleTimeout),
      "connect_retries": .number(connectRetries),
      "max_connections": .number(maxConnections),
    ]
  }

  private var url: String {
    switch address {
    case .tcp: (tls == nil ? "http://" : "https://") + address.description
    case .unix: address.description
    }
  }
}

extension UpstreamSettings.Host {
  fileprivate var text: String {
    switch self {
    case .preserve: "preserve"
    case .upstream: "upstream"
    case .name(let name): name
    }
  }
}
