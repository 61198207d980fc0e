import TLS

/// One place where clients connect, and how they are met there.
package struct Listener: Sendable, CustomStringConvertible {
  package enum Address: Sendable {
    /// Port 0 takes any free one.
    case tcp(host: String, port: Int)
    /// `mode` are the socket's permissions: who may connect.
    case unix(path: String, mode: Int)
  }

  package var address: Address
  /// `nil`: connections are not encrypted.
  package var certificate: ServerCertificate?
  /// Whether each connection begins with a header of the PROXY protocol.
  package var proxyProtocol: Bool

  package init(_ address: Address, certificate: ServerCertificate? = nil, proxyProtocol: Bool = false) {
    self.address = address
    self.certificate = certificate
    self.proxyProtocol = proxyProtocol
  }

  package var description: String {
    switch address {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path, _): "unix:\(path)"
    }
  }
}
