import HTTPTypes
import SemelClient

#if ASYNC_HTTP_CLIENT
  import AsyncHTTPClient
  import SemelAsyncHTTPClient
#else
  import SemelURLSession
#endif

/// The transports that a build has. The package of the clients' tests has the one on URLSession. Semel's own, which
/// builds NIO anyway, has the one on AsyncHTTPClient.
enum TransportKind: CaseIterable, Sendable {
  #if ASYNC_HTTP_CLIENT
    case asyncHTTPClient

    var transport: any Transport { .asyncHTTPClient(Self.client) }

    /// A client that lives as long as the process, and takes a refused connection as it is.
    private static let client: HTTPClient = {
      var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
      configuration.connectionPool.retryConnectionEstablishment = false
      return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }()
  #else
    case urlSession

    var transport: any Transport { .urlSession() }
  #endif

  /// Whether a response over HTTP/1.1 may have trailers, which end the process in Foundation on Linux.
  var takesTrailers: Bool {
    #if ASYNC_HTTP_CLIENT || !os(Linux)
      true
    #else
      false
    #endif
  }

  /// Whether a failure of TLS is known to have come before anything was sent. Foundation on Linux has no code for it.
  var knowsFailuresOfTLS: Bool { takesTrailers }

  /// Sends a request with a body of one byte to a server on this machine.
  func send(
    to port: UInt16, _ path: String = "/v1/orders", scheme: String = "http",
    method: HTTPRequest.Method = .post,
    timeout: Duration = .seconds(20), maxResponseBody: Int = 1000, on transport: (any Transport)? = nil
  ) async throws(TransportError) -> Response {
    let request = HTTPRequest(
      method: method, scheme: scheme, authority: "127.0.0.1:\(port)", path: path,
      headerFields: [.idempotencyKey: "order-17", .contentType: "application/json"])
    return try await (transport ?? self.transport).send(
      request, body: method == .post ? [0x31] : [], timeout: timeout, maxResponseBody: maxResponseBody)
  }

  /// Whether an exchange failed with the proof that nothing was sent; `nil` for a response.
  func isUnsent(
    to port: UInt16, _ path: String = "/v1/orders", scheme: String = "http", timeout: Duration = .seconds(20),
    maxResponseBody: Int = 1000
  ) async -> Bool? {
    do {
      _ = try await send(
        to: port, path, scheme: scheme, timeout: timeout, maxResponseBody: maxResponseBody)
      return nil
    } catch {
      if case .notSent = error { return true }
      return false
    }
  }
}
