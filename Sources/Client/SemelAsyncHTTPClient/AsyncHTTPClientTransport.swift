#if AsyncHTTPClient
  public import AsyncHTTPClient
  public import HTTPTypes
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  public import SemelClient

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #else
    import Darwin
  #endif

  /// A transport on AsyncHTTPClient, for servers.
  ///
  /// Give the client a configuration without redirects and without retries of its own:
  /// `HTTPClient.Configuration(redirectConfiguration: .disallow)`.
  public struct AsyncHTTPClientTransport: Transport {
    private let client: HTTPClient

    /// A transport on a client that the application owns.
    public init(client: HTTPClient) {
      self.client = client
    }

    /// One exchange on the client.
    public func send(
      _ request: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
    ) async throws(TransportError) -> Response {
      let url = "\(request.scheme ?? "http")://\(request.authority ?? "")\(request.path ?? "/")"
      var outgoing = HTTPClientRequest(url: url)
      outgoing.method = .RAW(value: request.method.rawValue)
      for field in request.headerFields { outgoing.headers.add(name: field.name.rawName, value: field.value) }
      if !body.isEmpty { outgoing.body = .bytes(body) }
      do {
        let response = try await client.execute(
          outgoing, timeout: .milliseconds(timeout.milliseconds))
        let bytes = try await response.body.collect(upTo: maxResponseBody)
        var fields = HTTPFields()
        for (name, value) in response.headers {
          guard let name = HTTPField.Name(name) else { continue }
          fields.append(HTTPField(name: name, value: value))
        }
        return Response(
          status: .init(code: Int(response.status.code)), fields: fields,
          body: [UInt8](bytes.readableBytesView))
      } catch {
        throw Self.failure(error)
      }
    }

    /// Only errors of the connection's making prove that nothing was sent.
    private static func failure(_ error: any Error) -> TransportError {
      let unsent: [HTTPClientError] = [
        .connectTimeout, .getConnectionFromPoolTimeout, .invalidURL, .emptyHost, .emptyScheme,
        .tlsHandshakeTimeout,
      ]
      if let error = error as? HTTPClientError, unsent.contains(error) { return .notSent("\(error)") }
      if error is NIOConnectionError { return .notSent("\(error)") }
      if let error = error as? IOError, error.errnoCode == ECONNREFUSED { return .notSent("\(error)") }
      return .lost("\(error)")
    }
  }

  extension Transport where Self == AsyncHTTPClientTransport {
    /// A transport on a client that the application owns and shuts down.
    public static func asyncHTTPClient(_ client: HTTPClient) -> AsyncHTTPClientTransport {
      AsyncHTTPClientTransport(client: client)
    }
  }
#else
  #error(
    "SemelAsyncHTTPClient needs the trait AsyncHTTPClient: .package(url: …, traits: [\"AsyncHTTPClient\"]).")
#endif
