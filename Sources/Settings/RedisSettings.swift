import Idempotency

/// How a Redis is reached.
package struct RedisSettings: Hashable, Sendable {
  package enum Endpoint: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  package var endpoint: Endpoint
  package var user: String?
  package var password: String?
  package var database = 0
  /// How long a command may take.
  package var timeout: Milliseconds = 500

  package init(endpoint: Endpoint) { self.endpoint = endpoint }
}
