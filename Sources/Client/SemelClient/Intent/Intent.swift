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
