/// One operation that a user wants, such as one order: a key, and the request that carries it out.
public struct Intent: Hashable, Sendable, Codable {
  /// The key, which no delivery changes.
  public let key: IntentKey
  /// The request of each delivery.
  public let request: IntentRequest

  /// An intent with a key that exists, such as one that was stored before.
  public init(key: IntentKey, request: IntentRequest) {
    self.key = key
    self.request = request
  }

  /// A new intent, with a new key. Make it where the user acts, and not in code that runs for each try.
  public init(_ request: IntentRequest, environment: ClientEnvironment = .system) {
    self.init(key: IntentKey(at: environment.now(), random: environment.random), request: request)
  }
}

/// The end of an intent.
public enum Outcome: Hashable, Sendable {
  /// The operation was carried out, once. `wasReplayed` says that an earlier delivery had carried it out.
  ///
  /// If the server did not keep the response (`response_not_kept`), this has the status of the outcome, the
  /// `Location` of the result where there is one, and the problem document as its body.
  case completed(Response, wasReplayed: Bool)
  /// The server has refused the operation for good. A retry gets the same response; what the user corrects is a new
  /// intent. A status of 500 and above, which only a server that records outcomes makes final, may have done a part.
  case rejected(Response)
  /// Nobody knows whether the operation was carried out. The key stays as it is and is never replaced: send the intent
  /// later under the same key, or have somebody look the result up.
  case unknown(Problem?)
}

/// The reasons why a call ended although nothing was carried out, so that it may be made again at any time.
public enum CallError: Error, Hashable, Sendable {
  /// No delivery reached the server, or each one that did was refused before it was carried out, until the limit of
  /// attempts or time. The last response, where there was one.
  case notExecuted(Response?)
  /// The retry budget of the host is used up: too many calls fail. The last response, where there was one.
  case budgetExhausted(Response?)
  /// There are no credentials that the server accepts.
  case credentials(CredentialError)
  /// The file of the request's body cannot be read, or the request holds fields that are no part of it.
  case invalidRequest(String)
  /// The task was cancelled before anything was sent.
  case cancelled
}
