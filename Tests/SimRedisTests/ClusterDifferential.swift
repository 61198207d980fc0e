import Glibc
import SimRedis
import TestSupport

/// The same random commands to the nodes of a real cluster and to those of a simulated one, while slots move.
final class ClusterDifferential {
  private let real: RedisCluster
  private let simulated: SimCluster
  private let connections: [RealConnection]
  private let peers: [SimPeer]
  private var commands: RandomCommands
  /// The slots of the keys, and the node that has each.
  private var owners: [Int: Int] = [:]
  /// The slots that are on their way, and their targets.
  private var moving: [Int: Int] = [:]
  private var count = 0

  private var tags: [Int: String] = [:]
  private static let tags = (0..<6).map { "{t\($0)}" }

  init(_ commands: RandomCommands) async throws {
    real = try await RedisCluster()
    connections = try real.masters.map { try RealConnection($0) }
    simulated = SimCluster(
      real.masters.map { .test(port: $0.port) }, masterCount: real.masters.count)
    peers = try simulated.nodes.map { try SimPeer($0) }
    self.commands = commands
    for tag in Self.tags {
      let slot = SimSlots.slot(of: Bytes(tag.utf8))
      tags[slot] = tag
      owners[slot] = simulated.nodes[0].slots?.owners[slot]
    }
  }

  /// Sends so many commands. Throws the first difference.
  func run(_ limit: Int) throws {
    while count < limit {
      if commands.chance(20) { try move() }
      let node = Int(commands.number(0...2))
      if commands.chance(4) { try exchange(texts("ASKING"), node) }
      try exchange(command(), node)
    }
  }

  private func exchange(_ words: [Bytes], _ node: Int) throws {
    count += 1
    try connections[node].write(words.encoded)
    let received = try connections[node].read()
    simulated.nodes[node].receive(words.encoded, on: peers[node].id, at: 0)
    let wanted = peers[node].received()
    guard [Self.comparable(received)] == wanted.map(Self.comparable) else {
      throw Differential.Difference(number: count, command: words, real: [received], simulated: wanted)
    }
  }

  /// A reply without the nodes' names, and without their hosts, which a node without others does not know.
  private static func comparable(_ reply: RESPReply) -> RESPReply {
    guard case .array(let members) = reply else { return reply }
    if members.count == 4, case .bulk = members[0], case .integer = members[1] { return members[1] }
    return .array(members.map(comparable))
  }

  private func key() -> Bytes { Bytes((commands.one(Self.tags) + commands.one(["", "a"])).utf8) }

  private func command() -> [Bytes] {
    let value = Bytes("v\(commands.number(0...9))".utf8)
    switch commands.number(0...11) {
    case 0, 1, 2: return texts("SET") + [key(), value]
    case 3: return texts("GET") + [key()]
    case 4: return texts("DEL") + [key(), key()].prefix(Int(commands.number(1...2)))
    case 5: return texts("EVAL", "return redis.call('GET', KEYS[1])", "1") + [key()]
    case 6: return texts("EVAL", "return redis.pcall('SET', ARGV[1], 'x')", "1") + [key(), key()]
    case 7: return texts("EVAL", "return redis.call('GET', ARGV[1])", "0") + [key()]
    case 8: return texts("EVAL", "return #KEYS", "2") + [key(), key()]
    case 9: return texts("PUBLISH", "c", "m")
    case 10: return texts("CLUSTER", "SLOTS")
    default: return texts("SELECT", commands.one(["0", "1"]))
    }
  }

  /// Begins to move a slot, moves one of its keys, or ends its move.
  private func move() throws {
    let slot = commands.one(owners.keys.sorted())
    guard let source = owners[slot] else { return }
    guard let target = moving[slot] else {
      let target = (source + Int(commands.number(1...2))) % 3
      moving[slot] = target
      try command(target, "CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", name(source))
      try command(source, "CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", name(target))
      return simulated.beginMigration(of: slot, from: source, to: target)
    }
    let keys = try real.masters[source].command(["CLUSTER", "GETKEYSINSLOT", "\(slot)", "10"]) ?? ""
    let first = keys.split(separator: "\n").map(String.init).min()
    if let first {
      try command(
        source, "MIGRATE", "127.0.0.1", "\(real.masters[target].port)", first, "0", "5000", "REPLACE")
      _ = simulated.moveKeys(of: slot, from: source, to: target, limit: 1, at: 0)
      return
    }
    (owners[slot], moving[slot]) = (target, nil)
    for node in [target, source] {
      try command(node, "CLUSTER", "SETSLOT", "\(slot)", "NODE", name(target))
    }
    try awaitNews(at: real.masters[3 - target - source], of: slot, port: real.masters[target].port)
    simulated.endMigration(of: slot, from: source, to: target)
    simulated.gossip()
  }

  /// Waits until a node has heard of a slot's new master, and all nodes of its epoch: the next master might choose the
  /// same epoch, and then the nodes never agree.
  private func awaitNews(at node: RedisServer, of slot: Int, port: Int) throws {
    for _ in 0..<30_000 {
      let epochs = try real.masters.map { try Self.epoch(at: $0) }
      let isKnown = try node.command(["GET", tags[slot] ?? ""])?.hasSuffix(":\(port)") == true
      if isKnown, Set(epochs).count == 1 { return }
      usleep(1000)
    }
    throw TestFailure("a node has not heard of a slot's new master in 30 s")
  }

  private static func epoch(at node: RedisServer) throws -> Substring? {
    try node.command(["CLUSTER", "INFO"])?.split(whereSeparator: \.isNewline).first {
      $0.hasPrefix("cluster_current_epoch:")
    }
  }

  private func name(_ node: Int) throws -> String {
    try real.masters[node].command(["CLUSTER", "MYID"]) ?? ""
  }

  private func command(_ node: Int, _ words: String...) throws {
    let reply = try real.masters[node].command(words) ?? ""
    guard reply == "+OK" else { throw TestFailure("\(words): \(reply)") }
  }
}
