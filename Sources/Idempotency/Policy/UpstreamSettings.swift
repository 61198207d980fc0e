/// One configured backend.
public struct UpstreamSettings: Hashable, Sendable {
  public enum Host: Hashable, Sendable {
    /// What the client sent.
    case preserve
    /// The authority of `url`.
    case upstream
    case name(String)
  }
  public enum Address: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  public enum HTTP2: String, CaseIterable, Hashable, Sendable {
    case off
    /// By ALPN, where there is TLS.
    case auto
    case priorKnowledge = "prior_knowledge"
  }
  /// How an `https` backend is verified, and how Semel shows who it is. Paths of PEM files.
  public struct TLS: Hashable, Sendable {
    /// Instead of the system's own authorities.
    public var ca: String?
    public var certificate: String?
    public var key: String?
    /// Instead of the host of the URL.
    public var serverName: String?

    public init() {}
  }

  public var name: String
  public var address: Address
  public var host: Host = .preserve
  public var http2: HTTP2 = .off
  /// `nil`: not `https`.
  public var tls: TLS?
  public var connectTimeout: Milliseconds = .seconds(2)
  public var responseTimeout: Milliseconds = .seconds(30)
  public var settle: Milliseconds = .seconds(30)
  public var idleTimeout: Milliseconds = .seconds(4)
  public var connectRetries = 3
  /// In all, over every event loop.
  public var maxConnections = 256

  public init(name: String, address: Address) {
    self.name = name
    self.address = address
  }
}
