public import HTTPTypes
public import SemelClient

#if canImport(FoundationNetworking)
  import Foundation
  public import FoundationNetworking
#else
  public import Foundation
#endif

/// A transport on Foundation's URL loading system.
///
/// On Linux that is FoundationNetworking, which brings its own libcurl along. That of Swift 6.3 ends the process when a
/// response over HTTP/1.1 has trailers: where a backend sends some, use `SemelAsyncHTTPClient`.
public struct URLSessionTransport: Transport {
  private let loader: Loader

  /// A transport with a session of its own, which no cache and no stored credentials serve.
  ///
  /// - Parameter configuration: the session's configuration, of which a copy is used. The default is an ephemeral one
  ///   without cookies.
  public init(configuration: URLSessionConfiguration? = nil) {
    loader = Loader(configuration ?? Self.plain)
  }

  private static var plain: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieStorage = nil
    configuration.httpShouldSetCookies = false
    configuration.httpMaximumConnectionsPerHost = 16
    return configuration
  }

  /// One exchange on the session, without a repetition and without a redirect.
  public func send(
    _ request: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
  ) async throws(TransportError) -> Response {
    let timeout = timeout.asPause
    guard let urlRequest = Self.urlRequest(request, body, timeout) else {
      throw .notSent("The request has no valid URL.")
    }
    let exchange = Exchange(maxResponseBody: maxResponseBody, hasBody: request.method != .head)
    let timer = Task {
      guard (try? await Task.sleep(for: timeout)) != nil else { return }
      exchange.end(.failure(.lost("No complete response came in time.")))
    }
    defer { timer.cancel() }
    return try await loader.load(urlRequest, exchange).get()
  }

  private static func urlRequest(_ request: HTTPRequest, _ body: [UInt8], _ timeout: Duration) -> URLRequest?
  {
    guard let scheme = request.scheme, let authority = request.authority, let path = request.path,
      path.hasPrefix("/"), let url = URL(string: "\(scheme)://\(authority)\(path)")
    else { return nil }
    var urlRequest = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
    // Foundation on Linux takes no notice of the time that the initialiser takes.
    urlRequest.timeoutInterval = timeout.inSeconds.rounded(.up)
    urlRequest.httpMethod = request.method.rawValue
    for field in request.headerFields {
      urlRequest.addValue(field.value, forHTTPHeaderField: field.name.rawName)
    }
    if !body.isEmpty { urlRequest.httpBody = Data(body) }
    return urlRequest
  }
}

extension Transport where Self == URLSessionTransport {
  /// A transport with a session of its own: an ephemeral one, or one of the application's configuration.
  public static func urlSession(_ configuration: URLSessionConfiguration? = nil) -> URLSessionTransport {
    URLSessionTransport(configuration: configuration)
  }
}
