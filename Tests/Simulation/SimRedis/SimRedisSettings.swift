/// The address of a server, as its peers and clients name it.
package struct SimAddress: Hashable, Sendable {
  package var host: String
  package var port: Int

  package init(host: String = "127.0.0.1", port: Int) {
    self.host = host
    self.port = port
  }

  var text: String { "\(host):\(port)" }
}

/// The configuration of one server.
package struct SimRedisSettings: Sendable {
  package enum Fsync: String, Sendable { case always, everysec, no }

  package enum Eviction: String, Sendable {
    case none = "noeviction"
    case all = "allkeys-random"
    case volatile = "volatile-random"
  }

  package var version = SimRedisVersion.redis7
  package var address: SimAddress
  /// The passwords of users, by their names; those of the user `default` alone make a login necessary.
  package var users: [String: String] = [:]
  /// When a file of all changes is synced; `nil` without a file.
  package var appendOnly: Fsync?
  /// The bytes that keys and values may take; `nil` without a limit.
  package var maxMemory: Int?
  package var eviction = Eviction.none
  /// The number of replicas without which no change is taken.
  package var minReplicas = 0
  /// The time after which a replica that has confirmed nothing does not count among these, in milliseconds.
  package var maxReplicaLag: Int64 = 10_000
  /// Whether a replica without its master serves what it has.
  package var servesStaleData = true
  /// The bytes of changes that are kept for replicas that come back.
  package var backlogSize = 1 << 20
  package var maxClients = 10_000

  package init(address: SimAddress) { self.address = address }
}
