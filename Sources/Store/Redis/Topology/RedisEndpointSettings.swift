import Idempotency
import TLS
import Wire

/// The credentials and the TLS client for one kind of server. Each new connection takes them as they are then.
public struct RedisLogin: Sendable {
  /// The user; `nil` for Redis' default user.
  public var user: String?
  /// The password; `nil` if the server requires none.
  public var password: Secret?
  /// Reads the file with the password, which may have changed, for a new connection; `nil` if no file is configured.
  public var readPassword: (@Sendable () throws(Fault) -> Secret)?
  /// The TLS client; `nil` for connections in clear.
  public var tls: ClientTLS?

  public init() {}

  /// The reason why a configured password is not available now.
  public struct Fault: Error, Equatable {
    public let reason: String

    public init(reason: String) { self.reason = reason }
  }

  func currentPassword() throws(Fault) -> Secret? {
    guard let readPassword else { return password }
    return try readPassword()
  }
}

/// The addresses and logins of Redis' servers, and the names of Semel's keys in them.
public struct RedisEndpointSettings: Sendable {
  /// The servers and their roles.
  public enum Topology: Sendable {
    case standalone
    /// The Sentinels' addresses, the name under which they know the master, and the login at them.
    case sentinel([ServerAddress], master: String, login: RedisLogin)
    /// Some nodes of a cluster, which name all others.
    case cluster([ServerAddress])

    var isStandalone: Bool { if case .standalone = self { true } else { false } }
    var isCluster: Bool { if case .cluster = self { true } else { false } }
  }

  /// The address of a standalone server; of another topology the first address that is configured.
  public var address: ServerAddress
  public var topology = Topology.standalone
  /// The login at the servers that hold the records.
  public var login = RedisLogin()
  /// The number of the database, for `SELECT`.
  public var database = 0
  /// The time-out of one call as a whole, including the wait for a connection and repetitions.
  public var timeout: Milliseconds = 500
  /// The time after which a connection for large responses is given up if no byte has passed; at least `timeout`.
  var maxSilence: Milliseconds = .seconds(5)
  /// The first part of every key and channel.
  public var namespace = "semel"
  /// Whether a Redis that may evict or lose records is refused. If not, a warning is logged.
  public var requireDurable = false
  /// The copies of a change that must exist before it counts; `nil` if Redis' own is enough.
  public var demand: ReplicaDemand?
  /// The time for which new claims wait at a server that has taken over, if replicas are demanded.
  public var failoverGrace: Milliseconds = 2000
  /// Whether no claim is granted before `RedisStore.admit`.
  public var awaitsAdmission = false
  /// The pause between two inspections, which detect settings of a running Redis that let it lose records or keep this
  /// node from publishing.
  public var inspectionInterval: Milliseconds = .seconds(3)
  /// The time for which the index of open records is left alone after Redis has forbidden one of its commands.
  var indexPause: Milliseconds = .seconds(60)

  public init(address: ServerAddress) { self.address = address }
}
