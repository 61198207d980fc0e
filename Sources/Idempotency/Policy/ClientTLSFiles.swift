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
