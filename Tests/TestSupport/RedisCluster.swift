import Foundation

/// A real cluster of a test's own: masters that share the slots evenly, each with the same number of replicas.
package final class RedisCluster: Sendable {
  /// The time after which the nodes take a silent one for dead.
  package static let nodeTimeout = Duration.seconds(2)
  private static let slotCount = 16384

  package let masters: [RedisServer]
  /// The replicas of each master, in the masters' order.
  package let replicas: [[RedisServer]]

  package var all: [RedisServer] { masters + replicas.flatMap { $0 } }
  package var ports: [Int] { all.map(\.port) }

  /// Starts the nodes, and returns once all of them agree that the cluster is up.
  ///
  /// - Parameters:
  ///   - count: The number of masters.
  ///   - replicaCount: The number of replicas of each.
  ///   - arguments: Further options of all nodes.
  ///   - own: Further options of one node, masters first.
  package init(
    masters count: Int = 3, replicas replicaCount: Int = 0, arguments: [String] = [],
    own: () -> [String] = { [] }
  ) async throws {
    var masters: [RedisServer] = []
    for _ in 0..<count { masters.append(try await Self.node(arguments + own())) }
    var replicas: [[RedisServer]] = []
    for _ in 0..<count {
      var group: [RedisServer] = []
      for _ in 0..<replicaCount { group.append(try await Self.node(arguments + own())) }
      replicas.append(group)
    }
    self.masters = masters
    self.replicas = replicas
    try shareSlots()
    try await meet()
    try await replicate()
  }

  private func shareSlots() throws {
    for (index, master) in masters.enumerated() {
      try master.command(["CLUSTER", "SET-CONFIG-EPOCH", "\(index + 1)"])
      let first = index * Self.slotCount / masters.count
      let last = (index + 1) * Self.slotCount / masters.count - 1
      try master.command(["CLUSTER", "ADDSLOTSRANGE", "\(first)", "\(last)"])
    }
  }

  private func meet() async throws {
    // A node that does not shake hands in time is dropped, and has to be met again.
    let others = try all.dropFirst().map { (id: try $0.clusterID, port: $0.port, bus: $0.busPort ?? 0) }
    try await Self.until("the first node knows the others") {
      let known = try masters[0].command(["CLUSTER", "NODES"]) ?? ""
      let strangers = others.filter { !known.contains($0.id) }
      for node in strangers {
        try masters[0].command(["CLUSTER", "MEET", "127.0.0.1", "\(node.port)", "\(node.bus)"])
      }
      return strangers.isEmpty
    }
    for node in all {
      try await Self.until("the nodes know each other") {
        try node.command(["CLUSTER", "INFO"])?.contains("cluster_known_nodes:\(all.count)") == true
      }
    }
  }

  private func replicate() async throws {
    for (master, own) in zip(masters, replicas) {
      for replica in own {
        try await Self.until("the replica knows its master") {
          try replica.command(["CLUSTER", "REPLICATE", try master.clusterID]) == "+OK"
        }
      }
    }
    for node in all {
      try await Self.until("the cluster is up") {
        try node.command(["CLUSTER", "INFO"])?.contains("cluster_state:ok") == true
      }
    }
    for replica in replicas.flatMap({ $0 }) {
      try await Self.until("the replica follows") {
        try replica.command(["INFO", "replication"])?.contains("master_link_status:up") == true
      }
    }
    // Only a master that knows its replicas lists them.
    for (master, own) in zip(masters, replicas) where !own.isEmpty {
      try await Self.until("the master has its replicas") {
        try master.command(["INFO", "replication"])?.contains("connected_slaves:\(own.count)") == true
      }
    }
  }

  /// The master that owns the key's slot at the start.
  package func master(of key: String) throws -> RedisServer {
    let slot = Int(try masters[0].command(["CLUSTER", "KEYSLOT", key])?.dropFirst() ?? "") ?? 0
    return masters[min(slot * masters.count / Self.slotCount, masters.count - 1)]
  }

  /// Moves a slot from one master to another, key by key. Calls `between` before the first key and after each.
  package func migrate(
    slot: Int, from source: RedisServer, to target: RedisServer, between: () async throws -> Void = {}
  ) async throws {
    try target.command(["CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", try source.clusterID])
    try source.command(["CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", try target.clusterID])
    try await between()
    while let keys = try source.command(["CLUSTER", "GETKEYSINSLOT", "\(slot)", "1"]), !keys.isEmpty {
      try source.command(["MIGRATE", "127.0.0.1", "\(target.port)", keys, "0", "5000"])
      try await between()
    }
    for node in [target, source] {
      try node.command(["CLUSTER", "SETSLOT", "\(slot)", "NODE", try target.clusterID])
    }
  }

  private static func node(_ arguments: [String]) async throws -> RedisServer {
    try await RedisServer(clusterTimeout: nodeTimeout, arguments: arguments)
  }

  private static func until(_ what: String, _ isSo: () throws -> Bool) async throws {
    let giveUp = ContinuousClock.now + .seconds(30)
    while try !isSo() {
      guard ContinuousClock.now < giveUp else { throw TestFailure("not within 30 s: \(what)") }
      try await Task.sleep(for: .milliseconds(20))
    }
  }
}

extension RedisServer {
  /// The node's name in its cluster.
  package var clusterID: String { get throws { try command(["CLUSTER", "MYID"]) ?? "" } }
}
