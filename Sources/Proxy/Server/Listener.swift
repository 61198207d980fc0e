import TLS
import Wire

/// One address at which clients connect, with its certificate and protocols.
public struct Listener: Sendable, CustomStringConvertible {
  public var address: ServerAddress
  /// The permissions of a Unix socket, which decide who may connect.
  public var mode: Int
  /// The certificate; `nil` if connections are not encrypted.
  public var certificate: ServerCertificate?
  /// Whether each connection begins with a header of the PROXY protocol.
  public var proxyProtocol: Bool

  public init(
    _ address: ServerAddress, mode: Int, certificate: ServerCertificate? = nil, proxyProtocol: Bool = false
  ) {
    self.address = address
    self.mode = mode
    self.certificate = certificate
    self.proxyProtocol = proxyProtocol
  }

  var isUnix: Bool {
    if case .unix = address { true } else { false }
  }

  public var description: String { address.description }
}
