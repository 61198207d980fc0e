public import HTTPTypes

/// An HTTP client that sends one request, once.
///
/// An implementation never repeats a request, follows no redirect, and stores no response. It distinguishes one thing
/// that most clients do not: whether a failure came before the first byte was sent.
public protocol Transport: Sendable {
  /// Sends a request with its whole body, and returns the complete response.
  ///
  /// A response with a body of more than `maxResponseBody` bytes is `lost`. A cancelled task ends the exchange.
  func send(
    _ request: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
  ) async throws(TransportError) -> Response
}

/// The failures of an exchange. When in doubt, it is `lost`.
public enum TransportError: Error, Hashable, Sendable {
  /// No byte of the request was sent: the name was not resolved, the connection refused, TLS failed.
  case notSent(String)
  /// The request was sent, in part at least, and no complete response came.
  case lost(String)
}

/// The server that a client talks to: a scheme and an authority.
public struct Origin: Hashable, Sendable, Codable, CustomStringConvertible {
  /// `http` or `https`.
  public let scheme: String
  /// The host, with the port if the URL named one.
  public let authority: String

  /// The origin of a URL such as `https://api.example.com` or `http://127.0.0.1:8080`. `nil` for one with a path, a
  /// query, user information, or another scheme.
  public init?(_ url: String) {
    guard let separator = url.firstRange(of: "://") else { return nil }
    let scheme = url[..<separator.lowerBound].lowercased()
    let authority = url[separator.upperBound...]
    let isValid = authority.utf8.allSatisfy { byte in
      (0x21...0x7E).contains(byte) && !"/?#@\\\"<>".utf8.contains(byte)
    }
    guard ["http", "https"].contains(scheme), !authority.isEmpty, isValid else { return nil }
    self.scheme = scheme
    self.authority = authority.lowercased()
  }

  /// The origin as a URL.
  public var description: String { "\(scheme)://\(authority)" }
}
