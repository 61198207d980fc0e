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
/// On Linux that is FoundationNetworking, which brings its own libcurl along.
public struct URLSessionTransport: Transport {
  private let session: URLSession

  /// A transport on a session of the application's own. Its configuration should keep no cache and no cookies; the
  /// default is an ephemeral session without either.
  public init(session: URLSession? = nil) {
    self.session = session ?? Self.plainSession
  }

  private static var plainSession: URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.httpCookieStorage = nil
    configuration.httpShouldSetCookies = false
    configuration.httpMaximumConnectionsPerHost = 16
    return URLSession(configuration: configuration, delegate: RedirectRefusal(), delegateQueue: nil)
  }

  /// One exchange on the session, without a repetition and without a redirect.
  public func send(
    _ request: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
  ) async throws(TransportError) -> Response {
    guard let urlRequest = Self.urlRequest(request, body, timeout) else {
      throw .notSent("The request has no valid URL.")
    }
    let exchange = Exchange()
    let result: Result<Response, TransportError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let task = session.dataTask(with: urlRequest) { data, response, error in
          continuation.resume(
            returning: Self.result(data, response, error, method: request.method, maxResponseBody))
        }
        exchange.begin(task)
      }
    } onCancel: {
      exchange.cancel()
    }
    return try result.get()
  }

  private static func urlRequest(_ request: HTTPRequest, _ body: [UInt8], _ timeout: Duration) -> URLRequest?
  {
    guard let scheme = request.scheme, let authority = request.authority, let path = request.path,
      let url = URL(string: "\(scheme)://\(authority)\(path)")
    else { return nil }
    var urlRequest = URLRequest(
      url: url, cachePolicy: .reloadIgnoringLocalCacheData,
      timeoutInterval: Double(timeout.components.seconds))
    urlRequest.httpMethod = request.method.rawValue
    for field in request.headerFields {
      urlRequest.addValue(field.value, forHTTPHeaderField: field.name.rawName)
    }
    if !body.isEmpty { urlRequest.httpBody = Data(body) }
    return urlRequest
  }

  private static func result(
    _ data: Data?, _ response: URLResponse?, _ error: (any Error)?, method: HTTPRequest.Method,
    _ maxResponseBody: Int
  ) -> Result<Response, TransportError> {
    if let error { return .failure(failure(error)) }
    guard let response = response as? HTTPURLResponse else {
      return .failure(.lost("The response is not HTTP's."))
    }
    let body = data ?? Data()
    guard body.count <= maxResponseBody else { return .failure(.lost("The response is too large.")) }
    // Foundation on Linux takes a cut body for a whole one where the server had stated its length.
    if method != .head, response.value(forHTTPHeaderField: "Content-Encoding") == nil,
      let stated = response.value(forHTTPHeaderField: "Content-Length").flatMap({ Int($0) }),
      body.count < stated
    {
      return .failure(.lost("The response ended early."))
    }
    var fields = HTTPFields()
    for case (let name as String, let value as String) in response.allHeaderFields {
      guard let name = HTTPField.Name(name) else { continue }
      fields.append(HTTPField(name: name, value: value))
    }
    return .success(Response(status: .init(code: response.statusCode), fields: fields, body: [UInt8](body)))
  }

  /// Only errors before the connection stood prove that nothing was sent.
  private static func failure(_ error: any Error) -> TransportError {
    let error = error as NSError
    let unsent = [
      NSURLErrorCannotFindHost, NSURLErrorCannotConnectToHost, NSURLErrorDNSLookupFailed,
      NSURLErrorNotConnectedToInternet, NSURLErrorSecureConnectionFailed,
      NSURLErrorServerCertificateUntrusted,
      NSURLErrorServerCertificateHasBadDate, NSURLErrorServerCertificateHasUnknownRoot,
      NSURLErrorServerCertificateNotYetValid, NSURLErrorBadURL, NSURLErrorUnsupportedURL,
    ]
    let isUnsent = error.domain == NSURLErrorDomain && unsent.contains(error.code)
    return isUnsent ? .notSent(error.localizedDescription) : .lost(error.localizedDescription)
  }
}

extension Transport where Self == URLSessionTransport {
  /// A transport on an ephemeral session, or on one of the application's own.
  public static func urlSession(_ session: URLSession? = nil) -> URLSessionTransport {
    URLSessionTransport(session: session)
  }
}

/// The task of one exchange, which may be cancelled before it begins.
private final class Exchange: Sendable {
  private enum State { case idle, running(URLSessionDataTask), cancelled }

  private let state = LockedValue(State.idle)

  func begin(_ task: URLSessionDataTask) {
    let isCancelled = state.withLock { state in
      if case .cancelled = state { return true }
      state = .running(task)
      return false
    }
    task.resume()
    if isCancelled { task.cancel() }
  }

  func cancel() {
    let task = state.withLock { state -> URLSessionDataTask? in
      defer { state = .cancelled }
      if case .running(let task) = state { return task }
      return nil
    }
    task?.cancel()
  }
}

/// A value that threads use one at a time.
private final class LockedValue<Value>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  init(_ value: Value) { self.value = value }

  func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    lock.withLock { body(&value) }
  }
}

/// The refusal of every redirect: a POST that is repeated elsewhere is a decision of the application.
private final class RedirectRefusal: NSObject, URLSessionTaskDelegate {
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }
}
