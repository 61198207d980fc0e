import Glibc
import NIOCore
import Wire

extension SocketAddress {
  /// The address in the form of the configuration: `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`.
  public var plainText: String {
    guard let ipAddress, let port else { return ServerAddress.unix(path: pathname ?? "").description }
    return ServerAddress.tcp(host: ipAddress, port: port).description
  }
}

/// The system's text for an error, without the names of the functions that it passed through.
public func plainText(of error: any Error) -> String {
  if let error = error as? IOError { return String(cString: strerror(error.errnoCode)) }
  let text = "\(error)"
  // BoringSSL's own text names a file of its source.
  return text.contains("CERTIFICATE_VERIFY_FAILED")
    ? "the server's certificate has expired, or is of no authority that is trusted (tls.ca)" : text
}

/// The failure to listen on an address. Its description includes the address, which the system's own text lacks.
public struct ListenError: Error, CustomStringConvertible {
  public let description: String

  public init(address: String, _ error: any Error) {
    description = "cannot listen on \(address): \(plainText(of: error))"
  }
}
