#if AsyncHTTPClient
  public import AsyncHTTPClient
  public import HTTPTypes
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import NIOSSL
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
  /// Give the client a configuration without redirects: `HTTPClient.Configuration(redirectConfiguration: .disallow)`. By
  /// default it tries a refused connection again for ten seconds before it reports that nothing was sent:
  /// `connectionPool.retryConnectionEstablishment` ends that.
  public struct AsyncHTTPClientTransport: Transport {
    private let client: HTTPClient

    /// A transport on a client that the application owns.
    public init(client: HTTPClient) {
      self.client = client
    }

    /// One exchange on the client.
    ///
    /// If the client follows redirects all the same, the response behind one is `lost`: it is another request's.
    public func send(
      _ request: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
    ) async throws(TransportError) -> Response {
      guard let scheme = request.scheme, let authority = request.authority, let path = request.path,
        path.hasPrefix("/")
      else { throw .notSent("The request has no valid URL.") }
      var outgoing = HTTPClientRequest(url: "\(scheme)://\(authority)\(path)")
      outgoing.method = .RAW(value: request.method.rawValue)
      for field in request.headerFields { outgoing.headers.add(name: field.name.rawName, value: field.value) }
      if !body.isEmpty { outgoing.body = .bytes(body) }
      let end = ContinuousClock.now + timeout.asPause
      let response: HTTPClientResponse
      do {
        response = try await client.execute(outgoing, timeout: .milliseconds(timeout.milliseconds))
      } catch {
        throw Self.failure(error)
      }
      guard response.history.count < 2 else { throw .lost("The client has followed a redirect.") }
      return try await Self.whole(response, by: end, maxResponseBody: maxResponseBody).get()
    }

    /// The response with its body, for which the client itself has no time-out.
    private static func whole(
      _ response: HTTPClientResponse, by end: ContinuousClock.Instant, maxResponseBody: Int
    ) async -> Result<Response, TransportError> {
      await withTaskGroup(of: Result<Response, TransportError>.self) { group in
        group.addTask {
          do {
            let bytes = try await response.body.collect(upTo: maxResponseBody)
            return .success(Self.response(response, [UInt8](bytes.readableBytesView)))
          } catch {
            return .failure(.lost("\(error)"))
          }
        }
        group.addTask {
          try? await Task.sleep(until: end, clock: .continuous)
          return .failure(.lost("No complete response came in time."))
        }
        defer { group.cancelAll() }
        return await group.next() ?? .failure(.lost("No response came."))
      }
    }

    private static func response(_ response: HTTPClientResponse, _ body: [UInt8]) -> Response {
      var fields = HTTPFields()
      for (name, value) in response.headers {
        guard let name = HTTPField.Name(name) else { continue }
        fields.append(HTTPField(name: name, value: value))
      }
      return Response(status: .init(code: Int(response.status.code)), fields: fields, body: body)
    }

    /// Only errors of the connection's making, and those of a request that is none, prove that nothing was sent.
    private static func failure(_ error: any Error) -> TransportError {
      let unsent: [HTTPClientError] = [
        .connectTimeout, .getConnectionFromPoolTimeout, .invalidURL, .emptyHost, .emptyScheme,
        .tlsHandshakeTimeout, .alreadyShutdown,
      ]
      if let error = error as? HTTPClientError, unsent.contains(error) { return .notSent("\(error)") }
      if error is NIOConnectionError || error is NIOSSLExtraError { return .notSent("\(error)") }
      if case NIOSSLError.handshakeFailed = error { return .notSent("\(error)") }
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
