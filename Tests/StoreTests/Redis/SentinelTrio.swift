import Idempotency
import Store
import TestSupport

/// A master and its replicas, and three Sentinels, of which two suffice to switch over to a replica.
struct SentinelTrio {
  let master: RedisServer
  let replicas: [RedisServer]
  let sentinels: [RedisServer]

  var replica: RedisServer { replicas[0] }

  /// - Parameters:
  ///   - count: The number of replicas.
  ///   - patience: The time without a reply after which the Sentinels take the master for dead.
  init(replicas count: Int = 1, patience: Milliseconds = .seconds(2)) async throws {
    let master = try await RedisServer(arguments: ["--repl-diskless-sync-delay", "0"], appendOnly: true)
    var replicas: [RedisServer] = []
    for _ in 0..<count {
      replicas.append(
        try await RedisServer(
          arguments: ["--replicaof", "127.0.0.1", "\(master.port)", "--repl-diskless-sync-delay", "0"]))
    }
    // Sentinels read a master's replicas at their start, and then once in ten seconds.
    for replica in replicas {
      try await until("a replica follows") { try master.isFollowed(by: replica) }
    }
    var sentinels: [RedisServer] = []
    for _ in 0..<3 {
      sentinels.append(
        try await RedisServer(
          sentinelOf: "orders", master: master.port, quorum: 2,
          lines: ["sentinel down-after-milliseconds orders \(patience.count)"]))
    }
    (self.master, self.replicas, self.sentinels) = (master, replicas, sentinels)
    for sentinel in sentinels {
      try await until("the Sentinels know one another and the replicas") { [self] in try isReady(sentinel) }
    }
  }

  /// Whether a Sentinel knows the others, and takes every replica for one that may be promoted.
  private func isReady(_ sentinel: RedisServer) throws -> Bool {
    let known = try sentinel.command(["SENTINEL", "REPLICAS", "orders"]) ?? ""
    return try replicas.allSatisfy { known.contains("\($0.port)") } && !known.contains("s_down")
      && sentinel.isQuorate(with: sentinels.count)
  }

  /// Waits until Semel uses one Sentinel for its queries and for pushes, and no other one. Returns its index.
  func sentinelInUse() async throws -> Int {
    var found: Int?
    try await until("Semel uses one Sentinel") {
      // The one that does not reply is dead.
      let counts = sentinels.map { (try? $0.connectionCount) ?? 0 }
      found = counts.firstIndex(of: 2)
      return found != nil && counts.reduce(0, +) == 2
    }
    guard let found else { throw Unexpected(what: "no Sentinel in use") }
    return found
  }

  /// Has a Sentinel replace the present master, and returns once the replica is promoted. A Sentinel that has not read
  /// the replica's state yet refuses.
  ///
  /// - Parameters:
  ///   - master: The present master.
  ///   - heir: Its replica.
  ///   - holdsChanges: Whether changes that reach the master wait there, until `CLIENT UNPAUSE` or for half a minute.
  func switchOver(from master: RedisServer, to heir: RedisServer, holdsChanges: Bool) async throws {
    try await until("the Sentinel switches") {
      if holdsChanges {
        try master.command(["CLIENT", "PAUSE", "30000", "WRITE"])
        try await master.awaitCopies(at: [heir])
      }
      if try sentinels[0].command(["SENTINEL", "FAILOVER", "orders"]) == "+OK" { return true }
      if holdsChanges { try master.command(["CLIENT", "UNPAUSE"]) }
      return false
    }
    try await until("the replica is promoted") { heir.isMaster }
  }

  /// The settings of a store that knows all three Sentinels.
  func settings(timeout: Milliseconds = .seconds(10)) -> RedisEndpointSettings {
    .orders(by: sentinels.map(\.port), timeout: timeout)
  }
}

extension RedisServer {
  /// The number of connections of Semel's to it.
  var connectionCount: Int {
    get throws {
      let clients = try command(["CLIENT", "LIST"])?.split(whereSeparator: \.isNewline) ?? []
      return clients.count { $0.contains(" name=semel ") }
    }
  }

  /// Whether this Sentinel counts so many, itself among them, that live, and they suffice for a failover.
  func isQuorate(with count: Int) throws -> Bool {
    try command(["SENTINEL", "CKQUORUM", "orders"])?.hasPrefix("+OK \(count) usable Sentinels.") == true
  }
}
