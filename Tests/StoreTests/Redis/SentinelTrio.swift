import Idempotency
import Store
import TestSupport

/// A master, its replicas and a Sentinel that can switch over to one of them.
struct SentinelTrio {
  let master: RedisServer
  let replicas: [RedisServer]
  let sentinel: RedisServer

  var replica: RedisServer { replicas[0] }
  var servers: [RedisServer] { [master] + replicas }

  /// - Parameters:
  ///   - count: The number of replicas.
  ///   - patience: The time without a reply after which the Sentinel takes the master for dead.
  init(replicas count: Int = 1, patience: Milliseconds = 500) async throws {
    let master = try await RedisServer(arguments: ["--repl-diskless-sync-delay", "0"], appendOnly: true)
    var replicas: [RedisServer] = []
    for _ in 0..<count {
      replicas.append(
        try await RedisServer(
          arguments: ["--replicaof", "127.0.0.1", "\(master.port)", "--repl-diskless-sync-delay", "0"]))
    }
    let sentinel = try await RedisServer(
      sentinelOf: "orders", master: master.port,
      lines: ["sentinel down-after-milliseconds orders \(patience.count)"])
    for replica in replicas {
      try await until("a replica follows") {
        try replica.command(["INFO", "replication"])?.contains("master_link_status:up") == true
      }
    }
    (self.master, self.replicas, self.sentinel) = (master, replicas, sentinel)
    // A Sentinel reads a master's replicas once in ten seconds.
    try sentinel.command(["SENTINEL", "RESET", "orders"])
    try await until("the Sentinel knows the replicas") { [self] in try isReady }
  }

  /// Whether the Sentinel takes every replica for one that it may promote.
  private var isReady: Bool {
    get throws {
      let known = try sentinel.command(["SENTINEL", "REPLICAS", "orders"]) ?? ""
      return replicas.allSatisfy { known.contains("\($0.port)") } && !known.contains("s_down")
    }
  }

  /// The port of the master that the Sentinel names.
  var named: Int? {
    get throws {
      try sentinel.command(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "orders"])?.split(separator: "\n").last
        .flatMap { Int($0) }
    }
  }

  /// Has the Sentinel replace the present master, and returns once the replica is promoted. A Sentinel that has not read
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
        try await until("the replica has every change") { try heir.changeOffset == master.changeOffset }
      }
      if try sentinel.command(["SENTINEL", "FAILOVER", "orders"]) == "+OK" { return true }
      if holdsChanges { try master.command(["CLIENT", "UNPAUSE"]) }
      return false
    }
    try await until("the replica is promoted") { heir.isMaster }
  }

  func settings(timeout: Milliseconds = .seconds(10)) -> RedisEndpointSettings {
    .orders(by: [sentinel.port], timeout: timeout)
  }
}

extension RedisServer {
  /// The place in the stream of changes that it has reached, as a master or as a replica.
  var changeOffset: Int? {
    get throws {
      let lines = try command(["INFO", "replication"])?.split(whereSeparator: \.isNewline) ?? []
      let prefix = "master_repl_offset:"
      return lines.first { $0.hasPrefix(prefix) }.flatMap { Int($0.dropFirst(prefix.count)) }
    }
  }
}
