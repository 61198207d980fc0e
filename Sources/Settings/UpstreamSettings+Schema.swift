import Idempotency
import TLS
import Wire

extension UpstreamSettings {
  static let schema = Schema(UpstreamSettings(name: "", address: .unix(path: "")), check: { $0.check($1) }) {
    Member("url", \.url, .url, "the backend; its address is not part of what identifies a request")
      .required("is missing: write \(UpstreamURL.allowed)")
    Member("host", \.host, .host, "the backend's `Host` field: the client's, that of `url`, or a name")
    Member("http2", \.http2, .word, "`auto`: by ALPN, under TLS; `prior_knowledge`: always")
    Member.optional("tls", \.tls, ClientTLSFiles.schema)
    Member("connect_timeout", \.connectTimeout, .duration(atLeast: 1), "the time for a connection")
    Member(
      "response_timeout", \.responseTimeout, .duration(atLeast: 1),
      "the time from a request's last byte to the response's last (protected) or first (passed through)")
    Member(
      "settle", \.settle, .duration(),
      "the time for a late response after a time-out, or after a lapsed lease")
    Member(
      "idle_timeout", \.idleTimeout, .duration(),
      "the time for which an unused connection is kept; below the backend's own, which is 2 s in gunicorn")
    Member(
      "connect_retries", \.connectRetries, .integer(0...100),
      "further attempts to connect, with growing pauses")
    Member(
      "max_connections", \.maxConnections, .integer(1...1_000_000),
      "connections of all event loops together; a quarter is for protected requests alone, and a caller with "
        + "many leaves a quarter to others (not over HTTP/2, nor with `limits.caller_in_flight: 0`)")
  }

  private func check(_ section: Section) {
    guard let url = section["url"], !url.hasFault, let text = url.text(UpstreamURL.allowed),
      !text.hasPrefix("https://")
    else { return }
    if http2 == .auto {
      section["http2"]?.warn(
        "has no effect without TLS: it goes by ALPN, which belongs to https://; write prior_knowledge for a backend "
          + "that takes HTTP/2 in clear, or take it out")
    }
    if let tls = section["tls"], !tls.hasFault { tls.refuse("is for https:// alone; take it out") }
  }

  private var url: UpstreamURL {
    get { UpstreamURL(address: address, isSecure: tls != nil) }
    set {
      address = newValue.address
      tls = newValue.isSecure ? ClientTLSFiles() : nil
    }
  }
}

extension Notation<UpstreamURL> {
  fileprivate static let url = Notation.text(
    UpstreamURL.allowed, show: { .text($0.text) },
    parse: { text throws(Refusal) in try UpstreamURL.parse(text) })
}

extension Notation<UpstreamSettings.Host> {
  fileprivate static let host = Notation.text(
    "preserve, upstream or a name", show: { .text($0.text) },
    parse: { text throws(Refusal) in try UpstreamSettings.Host.parse(text) })
}

extension UpstreamURL {
  fileprivate var text: String {
    switch address {
    case .tcp: (isSecure ? "https://" : "http://") + address.description
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

extension ClientTLSFiles {
  /// The certificates for connections to a backend or to Redis.
  static let schema = Schema(ClientTLSFiles(), check: { $0.check($1) }) {
    Member("ca", \.ca, .pem, "the authorities instead of the system's")
    Member("certificate", \.certificate, .pem, "Semel's own certificate")
    Member("key", \.key, .pem, "its private key")
    Member(
      "server_name", \.serverName, .serverName, "the name in the server's certificate, instead of the address"
    )
  }

  /// Reads the files themselves, so that unusable ones are reported before the first connection.
  private func check(_ section: Section) {
    let faults = TLSFault.each(certificate: certificate, key: key, authority: ca, as: .ca)
    for fault in faults { section[fault.file.rawValue]?.refuse(fault.message) }
    guard (section["certificate"] == nil) == (section["key"] == nil) else {
      return section.value.refuse("must have both certificate and key, or neither")
    }
    guard !section.value.hasFault else { return }
    do throws(TLSFault) { _ = try context() } catch {
      (section[error.file.rawValue] ?? section.value).refuse(error.message)
    }
  }
}

extension Notation<String> {
  fileprivate static let serverName = Notation.text("a host name", show: { .text($0) }) {
    text throws(Refusal) in
    try HostPort.parse(text, port: 443).host
  }
}
