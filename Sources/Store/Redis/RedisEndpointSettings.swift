import Idempotency

/// The address and login of one standalone Redis, and the names of Semel's keys in it.
public struct RedisEndpointSettings: Sendable, Equatable {
  public enum Address: Sendable, Equatable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  public var address: Address
  /// The user; `nil` for Redis' default user.
  public var user: String?
  /// The password; `nil` if Redis requires none.
  public var password: Secret?
  /// The number of the database, for `SELECT`.
  public var database = 0
  /// The time-out of one call as a whole, including the wait for a connection and repetitions.
  public var timeout: Milliseconds = 500
  /// The first part of every key and channel.
  public var namespace = "semel"
  /// Whether a Redis that may evict or lose records is refused. If not, a warning is logged.
  public var requireDurable = false
  /// Whether no claim is granted before `RedisStore.admit`.
  public var awaitsAdmission = false
  /// The pause between two inspections, which detect settings of a running Redis that let it lose records or keep this
  /// node from publishing.
  public var inspectionInterval: Milliseconds = .seconds(3)

  public init(address: Address) { self.address = address }
}

extension RedisEndpointSettings.Address: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tcp(let host, let port): "\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
