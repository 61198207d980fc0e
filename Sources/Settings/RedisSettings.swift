import Idempotency
import TLS
import Wire

/// The connection to one Redis server, to a master that Sentinels name, or to a cluster.
public struct RedisSettings: Hashable, Sendable {
  public typealias Endpoint = ServerAddress

  /// The servers and their roles.
  public enum Topology: Hashable, Sendable {
    case standalone(Endpoint)
    /// The Sentinels, and the name under which they know the master.
    case sentinel([Endpoint], master: String)
    /// Some nodes of the cluster, which name all others.
    case cluster([Endpoint])
  }

  /// The credentials and the TLS settings for one kind of server.
  public struct Login: Hashable, Sendable {
    /// The user; `nil` for Redis' default user.
    public var user: String?
    public var password: Secret?
    /// The path of a file with the password, which is read for each connection; `nil` if there is none. `password` is
    /// `nil` then.
    public var passwordFile: String?
    /// The TLS settings; `nil` for connections in clear.
    public var tls: ClientTLSFiles?

    public init() {}
  }

  /// The copies of a change that must exist before it counts.
  public struct Copies: Hashable, Sendable {
    public enum Medium: String, CaseIterable, Sendable { case memory, waitaof }

    /// The minimum of `store.timeout` where anything is waited for.
    static let minTimeout: Milliseconds = 300

    /// The number of replicas that must have the change.
    public var replicas = 0
    /// The medium on which Redis and these replicas must have the change.
    public var medium = Medium.memory
    /// The time for which new claims wait at a promoted server.
    public var failoverGrace = Milliseconds.seconds(2)

    public init() {}

    /// Whether a change counts only once there are copies.
    var areDemanded: Bool { replicas > 0 || medium == .waitaof }
  }

  public var topology: Topology
  public var copies = Copies()
  public var login = Login()
  /// The login at Sentinels, which do not share the servers' users.
  public var sentinelLogin = Login()
  /// The number of the database; 0 unless a single server has another.
  public var database = 0

  public init(_ topology: Topology) { self.topology = topology }

  public init(address: Endpoint) { self.init(.standalone(address)) }
}

extension RedisSettings {
  /// The servers' addresses as they are written, at least one.
  public var endpoints: [Endpoint] {
    switch topology {
    case .standalone(let endpoint): [endpoint]
    case .sentinel(let nodes, _), .cluster(let nodes): nodes
    }
  }

  /// The topology, unless it is a single server, and the addresses as they are written.
  public var place: String {
    let addresses = endpoints.map(\.description).joined(separator: ", ")
    return switch topology {
    case .standalone: addresses
    case .sentinel(_, let master): "sentinel \(master) by \(addresses)"
    case .cluster: "cluster \(addresses)"
    }
  }
}
