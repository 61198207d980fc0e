import Idempotency

/// How to reach one standalone Redis, and under which names records stand there.
public struct RedisEndpointSettings: Sendable, Equatable {
  public enum Address: Sendable, Equatable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  public var address: Address
  /// `nil`: Redis' default user.
  public var user: String?
  public var password: Secret?
  public var database = 0
  /// For one call in all, also where it waits for a connection or is repeated.
  public var timeout: Milliseconds = 500
  /// The first part of every key and channel.
  public var namespace = "semel"
  /// Whether a Redis that may evict or forget records is refused; else it is warned of.
  public var requireDurable = false
  /// Whether no claim is granted before `RedisStore.admit`.
  public var awaitsAdmission = false
  /// A setting of a live Redis that lets it lose records, or keeps this node from publishing, is noticed after so long.
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
