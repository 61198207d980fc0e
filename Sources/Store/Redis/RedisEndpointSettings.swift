import Idempotency

/// How to reach one standalone Redis, and under which names records stand there.
package struct RedisEndpointSettings: Sendable, Equatable {
  package enum Address: Sendable, Equatable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  package var address: Address
  /// `nil`: Redis' default user.
  package var user: String?
  package var password: String?
  package var database = 0
  /// For one call in all, also where it waits for a connection or is repeated.
  package var timeout: Milliseconds = 500
  /// The first part of every key and channel.
  package var namespace = "semel"
  /// Whether a Redis that may evict or forget records is refused; else it is warned of.
  package var requireDurable = false

  package init(address: Address) { self.address = address }
}

extension RedisEndpointSettings.Address: CustomStringConvertible {
  package var description: String {
    switch self {
    case .tcp(let host, let port): "\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
