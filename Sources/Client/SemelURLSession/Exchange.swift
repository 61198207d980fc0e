import HTTPTypes
import SemelClient

#if canImport(FoundationNetworking)
  import Foundation
  import FoundationNetworking
#else
  import Foundation
#endif

/// One request and its response. It ends once: with a response, an error, its time, or its task's cancellation.
final class Exchange: Sendable {
  typealias Outcome = Result<Response, TransportError>

  private struct State {
    var waiter: CheckedContinuation<Outcome, Never>?
    var outcome: Outcome?
    var response: HTTPURLResponse?
    var body: [UInt8] = []
    var wasChallenged = false
  }

  private let maxResponseBody: Int
  /// Whether the response has the body whose length it states.
  private let hasBody: Bool
  private let state = LockedValue(State())

  init(maxResponseBody: Int, hasBody: Bool) {
    self.maxResponseBody = maxResponseBody
    self.hasBody = hasBody
  }

  /// The outcome, which is waited for.
  func outcome(begin: () -> Void) async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state in
          if state.outcome == nil { state.waiter = continuation }
          return state.outcome
        }
        if let outcome { continuation.resume(returning: outcome) } else { begin() }
      }
    } onCancel: {
      end(.failure(.lost("The task was cancelled.")))
    }
  }

  /// Ends the exchange, unless it has ended.
  func end(_ outcome: Outcome) {
    let waiter = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: outcome)
  }

  /// A head has come. One of the class 1xx is followed by another.
  func didReceive(_ response: URLResponse) {
    state.withLock { state in
      state.response = response as? HTTPURLResponse
      state.body = []
    }
  }

  func didReceive(_ data: Data) {
    let isTooLarge = state.withLock { state in
      guard state.body.count + data.count <= maxResponseBody else { return true }
      state.body += data
      return false
    }
    if isTooLarge { end(.failure(.lost("The response is too large."))) }
  }

  /// The server asks for a user's name and password. The response that does so is the outcome.
  func wasChallenged() {
    state.withLock { $0.wasChallenged = true }
  }

  /// The session has ended its task.
  func didComplete(_ task: URLSessionTask, _ error: (any Error)?) {
    let (response, body, wasChallenged) = state.withLock { ($0.response, $0.body, $0.wasChallenged) }
    // Foundation on Linux refuses a challenge by cancelling the task, whose response is whole by then.
    if let error = error.map({ $0 as NSError }),
      !(wasChallenged && response != nil && error.code == NSURLErrorCancelled)
    {
      return end(.failure(Self.failure(error, sentBytes: task.countOfBytesSent)))
    }
    guard let response = response ?? task.response as? HTTPURLResponse else {
      return end(.failure(.lost("There is no response of HTTP.")))
    }
    end(outcome(of: response, body))
  }

  private func outcome(of response: HTTPURLResponse, _ body: [UInt8]) -> Outcome {
    // Foundation on Linux takes a cut body for a whole one where the server had stated its length, and leaves out that
    // of a redirect which names no place.
    if hasBody, ![204, 304].contains(response.statusCode), !(300..<400).contains(response.statusCode),
      response.value(forHTTPHeaderField: "Content-Encoding") == nil,
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
    return .success(Response(status: .init(code: response.statusCode), fields: fields, body: body))
  }

  /// Only errors before the connection stood prove that nothing was sent. An unsupported URL is none of them, since
  /// Foundation on Linux has the same code for a response that is no HTTP.
  private static func failure(_ error: NSError, sentBytes: Int64) -> TransportError {
    let unsent = [
      NSURLErrorCannotFindHost, NSURLErrorCannotConnectToHost, NSURLErrorDNSLookupFailed,
      NSURLErrorNotConnectedToInternet, NSURLErrorSecureConnectionFailed,
      NSURLErrorServerCertificateUntrusted,
      NSURLErrorServerCertificateHasBadDate, NSURLErrorServerCertificateHasUnknownRoot,
      NSURLErrorServerCertificateNotYetValid,
    ]
    let isUnsent = error.domain == NSURLErrorDomain && unsent.contains(error.code) && sentBytes == 0
    return isUnsent ? .notSent(error.localizedDescription) : .lost(error.localizedDescription)
  }
}

/// A session, and the exchanges on it.
final class Loader: Sendable {
  private let session: URLSession
  private let exchanges = Exchanges()

  init(_ configuration: URLSessionConfiguration) {
    let copy = configuration.copy() as? URLSessionConfiguration ?? configuration
    // A cancelled task ends the process on Linux while a cache is being asked.
    copy.urlCache = nil
    copy.urlCredentialStorage = nil
    session = URLSession(configuration: copy, delegate: exchanges, delegateQueue: nil)
  }

  deinit { session.finishTasksAndInvalidate() }

  func load(_ request: URLRequest, _ exchange: Exchange) async -> Exchange.Outcome {
    let task = session.dataTask(with: request)
    exchanges.begin(exchange, as: task.taskIdentifier)
    let outcome = await exchange.outcome { task.resume() }
    // An exchange that did not end by its response still runs.
    if exchanges.end(task.taskIdentifier) { task.cancel() }
    return outcome
  }
}

/// The delegate of a session: the exchanges by the numbers of their tasks.
private final class Exchanges: NSObject, URLSessionDataDelegate, Sendable {
  private let running = LockedValue<[Int: Exchange]>([:])

  func begin(_ exchange: Exchange, as number: Int) { running.withLock { $0[number] = exchange } }

  /// Forgets an exchange. Returns whether its task still runs.
  func end(_ number: Int) -> Bool { running.withLock { $0.removeValue(forKey: number) } != nil }

  private func exchange(_ task: URLSessionTask) -> Exchange? { running.withLock { $0[task.taskIdentifier] } }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    exchange(dataTask)?.didReceive(response)
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    exchange(dataTask)?.didReceive(data)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    guard let exchange = running.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
    exchange.didComplete(task, error)
  }

  /// Refuses every redirect: a POST that is repeated elsewhere is a decision of the application.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  /// Refuses to answer for a user: a `CredentialSource` does so. The certificates of servers are judged by the system.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let users = [
      NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic,
      NSURLAuthenticationMethodHTTPDigest,
      NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
    ]
    guard users.contains(challenge.protectionSpace.authenticationMethod) else {
      return completionHandler(.performDefaultHandling, nil)
    }
    exchange(task)?.wasChallenged()
    completionHandler(.rejectProtectionSpace, nil)
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
