import Wire

/// The settings of one backend.
public struct UpstreamSettings: Hashable, Sendable {
  /// The value of `Host` in requests to the backend.
  public enum Host: Hashable, Sendable {
    /// The host that the client sent.
    case preserve
    /// The authority of `url`.
    case upstream
    case name(String)
  }

  /// The use of HTTP/2 for the backend.
  public enum HTTP2: String, CaseIterable, Hashable, Sendable {
    case off
    /// HTTP/2 if ALPN selects it, which requires TLS.
    case auto
    case priorKnowledge = "prior_knowledge"
  }

  public var name: String
  public var address: ServerAddress
  public var host: Host = .preserve
  public var http2: HTTP2 = .off
  /// The TLS settings; `nil` if the URL is not `https`.
  public var tls: ClientTLSFiles?
  /// The time limit for one attempt to connect, and for the wait for a free connection.
  public var connectTimeout: Milliseconds = .seconds(2)
  /// The time limit for a response, from the request's last byte to the response's last (protected) or first (passed
  /// through).
  public var responseTimeout: Milliseconds = .seconds(30)
  /// The time after a time-out for which Semel waits for a late response.
  public var settle: Milliseconds = .seconds(30)
  /// The maximum time for which an unused connection is kept; 0 keeps none. It should be below the backend's own limit.
  public var idleTimeout: Milliseconds = 1500
  /// The maximum number of further attempts to connect, before anything is sent.
  public var connectRetries = 3
  /// The maximum number of connections over all event loops together.
  public var maxConnections = 256

  /// The maximum pause before another attempt to connect.
  public static let maxConnectPause: Milliseconds = 500

  /// The maximum time until a connection is established, or given up. Each attempt waits for a free connection first,
  /// if all are in use.
  public var longestConnecting: Milliseconds {
    let attempt = connectTimeout + connectTimeout + Self.maxConnectPause
    return Milliseconds(attempt.count * Int64(connectRetries + 1))
  }

  public init(name: String, address: ServerAddress) {
    self.name = name
    self.address = address
  }
}

/// The TLS settings of Semel as a client of another server: paths of PEM files, and the server's name.
public struct ClientTLSFiles: Hashable, Sendable {
  /// The server's root certificates; `nil` for the system's.
  public var ca: String?
  /// Semel's own certificate; `nil` if it presents none.
  public var certificate: String?
  /// The key of `certificate`.
  public var key: String?
  /// The name that the server's certificate must have; `nil` for the host of its address.
  public var serverName: String?

  public init(
    ca: String? = nil, certificate: String? = nil, key: String? = nil, serverName: String? = nil
  ) {
    self.ca = ca
    self.certificate = certificate
    self.key = key
    self.serverName = serverName
  }
}
