import Glibc
import NIOCore
import NIOPosix
import Wire

extension SocketAddress {
  /// The address in the form of the configuration: `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`.
  public var plainText: String {
    guard let ipAddress, let port else { return ServerAddress.unix(path: pathname ?? "").description }
    return ServerAddress.tcp(host: ipAddress, port: port).description
  }
}

/// The system's text for an error, without the names of the functions that it passed through. For a failure to connect,
/// it is the text for the first address that was tried.
public func plainText(of error: any Error) -> String {
  let error = error.atFirstAddress
  if error is NIOConnectionError { return "its name is not known" }
  if let error = error as? IOError { return String(cString: strerror(error.errnoCode)) }
  let text = "\(error)"
  // BoringSSL's own text names a file of its source.
  return text.contains("CERTIFICATE_VERIFY_FAILED")
    ? "the server's certificate has expired, or is of no authority that is trusted (tls.ca)" : text
}

extension Error {
  /// The error at the first address that was tried, if this is NIO's failure to connect to any; otherwise the error
  /// itself, as when a name has no address.
  public var atFirstAddress: any Error {
    guard let failure = self as? NIOConnectionError, let first = failure.connectionErrors.first else {
      return self
    }
    return first.error
  }
}

/// The failure to listen on an address. Its description includes the address, which the system's own text lacks.
public struct ListenError: Error, CustomStringConvertible {
  public let address: String
  /// The system's number of the error; `nil` if it is none of the system's.
  public let number: CInt?
  public let description: String

  public init(address: String, _ error: any Error) {
    self.address = address
    number = (error.atFirstAddress as? IOError)?.errnoCode
    description = "cannot listen on \(address): \(plainText(of: error))"
  }
}
