/// The settings of one backend.
public struct UpstreamSettings: Hashable, Sendable {
  public enum Host: Hashable, Sendable {
    /// The host that the client sent.
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
    /// By ALPN if the connection uses TLS.
    case auto
    case priorKnowledge = "prior_knowledge"
  }
  /// The settings for verifying an `https` backend and for Semel's own client certificate. Paths are those of PEM
  /// files.
  public struct TLS: Hashable, Sendable {
    /// The authorities that replace the system's own.
    public var ca: String?
    public var certificate: String?
    public var key: String?
    /// The server's name that replaces the host of the URL.
    public var serverName: String?

    public init() {}
  }

  public var name: String
  public var address: Address
  public var host: Host = .preserve
  public var http2: HTTP2 = .off
  /// The TLS settings; `nil` if the URL is not `https`.
  public var tls: TLS?
  public var connectTimeout: Milliseconds = .seconds(2)
  public var responseTimeout: Milliseconds = .seconds(30)
  public var settle: Milliseconds = .seconds(30)
  public var idleTimeout: Milliseconds = .seconds(4)
  public var connectRetries = 3
  /// The maximum number of connections over all event loops together.
  public var maxConnections = 256

  public init(name: String, address: Address) {
    self.name = name
    self.address = address
  }
}
