/// One configured backend.
package struct UpstreamSettings: Hashable, Sendable {
  package enum Host: Hashable, Sendable {
    /// What the client sent.
    case preserve
    /// The authority of `url`.
    case upstream
    case name(String)
  }
  package enum Address: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  package enum HTTP2: String, CaseIterable, Hashable, Sendable {
    case off
    /// By ALPN, where there is TLS.
    case auto
    case priorKnowledge = "prior_knowledge"
  }
  /// How an `https` backend is verified, and how Semel shows who it is. Paths of PEM files.
  package struct TLS: Hashable, Sendable {
    /// Instead of the system's own authorities.
    package var ca: String?
    package var certificate: String?
    package var key: String?
    /// Instead of the host of the URL.
    package var serverName: String?

    package init() {}
  }

  package var name: String
  package var address: Address
  package var host: Host = .preserve
  package var http2: HTTP2 = .off
  /// `nil`: not `https`.
  package var tls: TLS?
  package var connectTimeout: Milliseconds = .seconds(2)
  package var responseTimeout: Milliseconds = .seconds(30)
  package var settle: Milliseconds = .seconds(30)
  package var idleTimeout: Milliseconds = .seconds(4)
  package var connectRetries = 3
  /// In all, over every event loop.
  package var maxConnections = 256

  package init(name: String, address: Address) {
    self.name = name
    self.address = address
  }
}
