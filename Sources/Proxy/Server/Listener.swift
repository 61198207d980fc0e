import TLS

/// One address at which clients connect, with its certificate and protocols.
public struct Listener: Sendable, CustomStringConvertible {
  public enum Address: Sendable {
    /// Port 0 takes any free one.
    case tcp(host: String, port: Int)
    /// `mode` is the socket's permissions, which decide who may connect.
    case unix(path: String, mode: Int)
  }

  public var address: Address
  /// `nil`: connections are not encrypted.
  public var certificate: ServerCertificate?
  /// Whether each connection begins with a header of the PROXY protocol.
  public var proxyProtocol: Bool

  public init(_ address: Address, certificate: ServerCertificate? = nil, proxyProtocol: Bool = false) {
    self.address = address
    self.certificate = certificate
    self.proxyProtocol = proxyProtocol
  }

  public var description: String {
    switch address {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path, _): "unix:\(path)"
    }
  }
}
