import Idempotency

/// How a Redis is reached.
public struct RedisSettings: Hashable, Sendable {
  public enum Endpoint: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  public var endpoint: Endpoint
  public var user: String?
  public var password: String?
  public var database = 0
  /// How long a command may take.
  public var timeout: Milliseconds = 500

  public init(endpoint: Endpoint) { self.endpoint = endpoint }
}
