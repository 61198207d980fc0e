import Idempotency
import SimRedis

/// The Redis of a world: one server, a master with replicas, one that Sentinels watch, or a cluster.
///
/// Only the world's thread uses it, hence `@unchecked Sendable`.
final class RedisServers: @unchecked Sendable {
  static let firstPort = 7000
  private static let masterName = "orders"
  private static let namespace = "semel"

  let topology: Plan.Topology
  private let network: Network
  private let seed: UInt64
  private var dice: Dice
  /// The gain of all servers' clocks, which one clock sets.
  private let drift: Int64
  private(set) var shards: [RedisShard] = []
  private var sentinels: SimSentinels?
  private var cluster: SimCluster?
  private var hosts: [RedisHost] = []
  private var sentinelHosts: [RedisHost] = []
  private var isPassing = false
  /// The number of replicas that must have a change before it counts.
  let demand: Int
  /// The times at which a replica took the place of a master, and the numbers of both.
  var promotions: [(at: Moment, former: Int, next: Int)] = []
  /// Called with what happens to the servers, for a person to read.
  var journal: ((String) -> Void)?
  /// Called when a part of the store begins to fail.
  var didFail: () -> Void = {}
  /// Called with each change of a record by a command at a server, with the record's id and the server's number.
  var onChange: (String, RecordPath, Int) -> Void = { _, _, _ in }
  /// Called with the id of a record whose text a command has written in an unknown form.
  var onDamage: (String) -> Void = { _ in }

  init?(_ topology: Plan.Topology, on network: Network, seed: UInt64) {
    guard topology != .memory else { return nil }
    self.topology = topology
    self.network = network
    self.seed = seed
    dice = Dice(seed, "redis")
    drift = Int64(dice.between(-300, 300))
    let replicas = topology == .standalone ? 0 : topology == .cluster ? 1 : 1 + dice.below(2)
    demand = topology == .standalone ? 0 : dice.chance(0.6) ? 1 + dice.below(replicas) : 0
    let masters = topology == .cluster ? 3 : 1
    var settings = SimRedisSettings(address: SimAddress(port: 0))
    settings.version = SimRedisVersion.allCases[dice.below(3)]
    settings.appendOnly = replicas == 0 ? [.always, .everysec, nil][dice.below(3)] : .always
    settings.backlogSize = 1 << 28
    settings.minReplicas = dice.chance(0.5) ? demand : 0
    for number in 0..<masters * (1 + replicas) { hosts.append(host(number, settings)) }
    for host in hosts {
      host.server.didChange = { [unowned self, unowned host] in changed($0, $1, $2, at: host) }
    }
    build(masters, replicas)
  }

  private var schedule: Schedule { network.schedule }

  private func host(_ number: Int, _ settings: SimRedisSettings) -> RedisHost {
    var (settings, dice) = (settings, Dice(seed, "redis", number + 1))
    settings.address = SimAddress(port: Self.firstPort + number)
    let clock = SimRedisClock(
      microseconds: Machine.firstWall / 1000 + Int64(dice.between(-2000, 2000)), drift: drift)
    let server = SimRedisServer(settings, clock: clock, random: dice)
    return RedisHost(server, number: number, on: network)
  }

  private func build(_ masters: Int, _ replicas: Int) {
    if topology == .cluster { cluster = SimCluster(hosts.map(\.server), masterCount: masters) }
    for number in 0..<masters {
      let members = [hosts[number]] + (0..<replicas).map { hosts[masters + number * replicas + $0] }
      let shard = RedisShard(members, of: self, Dice(seed, "shard", number))
      shards.append(shard)
      for replica in members.dropFirst() {
        let link =
          cluster?.follow(replica.number, number)
          ?? SimReplicationLink(from: replica.server, to: members[0].server)
        shard.follow(link, replica)
      }
    }
    guard topology == .sentinel else { return }
    sentinelHosts = (0..<3).map { host(100 + $0, SimRedisSettings(address: SimAddress(port: 0))) }
    sentinels = SimSentinels(
      name: Self.masterName, sentinels: sentinelHosts.map(\.server), members: hosts.map(\.server))
  }

  /// The store's members in a node's configuration.
  var configuration: String {
    let ports = (topology == .sentinel ? sentinelHosts : hosts).map(\.server.settings.address.port)
    let nodes = ports.map { "'127.0.0.1:\($0)'" }.joined(separator: ", ")
    let place =
      switch topology {
      case .memory, .standalone, .replica: "url: 'redis://127.0.0.1:\(ports[0])'"
      case .sentinel: "topology: sentinel, nodes: [\(nodes)], master_name: \(Self.masterName)"
      case .cluster: "topology: cluster, nodes: [\(nodes)]"
      }
    let copies = demand > 0 ? ", replicas: \(demand), failover_grace: 500ms" : ""
    let timeout = topology == .standalone ? 250 : 400
    return "{kind: redis, \(place), timeout: \(timeout)ms\(copies)}"
  }

  /// The id of the record whose key, or one of whose keys, this is; `nil` for none.
  static func record(of key: Bytes) -> String? {
    guard let open = key.firstIndex(of: UInt8(ascii: "{")),
      let close = key[open...].firstIndex(of: UInt8(ascii: "}")), !key[close...].starts(with: "}:facts".utf8)
    else { return nil }
    return String(decoding: key[(open + 1)..<close], as: UTF8.self)
  }

  /// Whether this is the key of a response that is not in its record.
  static func isResponse(_ key: Bytes) -> Bool {
    guard record(of: key) != nil, let close = key.firstIndex(of: UInt8(ascii: "}")) else { return false }
    return close < key.endIndex - 1
  }

  private static func slot(of id: String) -> Int {
    SimSlots.slot(of: Bytes("\(namespace):{\(id)}".utf8))
  }

  /// Whether a change of a record was lost.
  func hasLost(_ id: String) -> Bool { shards.contains { $0.hasLost(id) } }

  /// The records that somebody watches.
  var watched: [String] {
    hosts.flatMap(\.server.subscribedChannels).compactMap(Self.record(of:))
  }

  func dismantle() {
    journal = nil
    didFail = {}
    (onChange, onDamage) = ({ _, _, _ in }, { _ in })
    for host in hosts {
      host.didChange = {}
      host.server.didChange = nil
    }
  }
}

// The changes of records by commands.
extension RedisServers {
  private func changed(
    _ key: Bytes, _ before: Keyspace.Entry?, _ after: Keyspace.Entry?, at host: RedisHost
  ) {
    guard let id = Self.record(of: key), !Self.isResponse(key) else { return }
    let (last, next) = (before.flatMap(Self.text), after.flatMap(Self.text))
    guard last != next else { return }
    let (lastEntry, nextEntry) = (last.flatMap(PathEntry.init), next.flatMap(PathEntry.init))
    guard (lastEntry == nil) == (last == nil), (nextEntry == nil) == (next == nil) else {
      return onDamage(id)
    }
    let now = StoreInstant(milliseconds: host.server.clock.milliseconds(at: host.now))
    let isForgotten = next.map { PathEntry.isForgotten($0, after: last ?? []) } ?? false
    let path = RecordPath(before: lastEntry, after: nextEntry, now: now, isDecision: isForgotten)
    onChange(id, path, host.number)
  }

  private static func text(_ entry: Keyspace.Entry) -> Bytes? {
    guard case .text(let text) = entry.value else { return nil }
    return text
  }
}

// The way of shards to one another.
extension RedisServers {
  /// Whether a replica may take over.
  var canFailOver: Bool { sentinels != nil || cluster != nil }

  /// Makes a replica of a shard the master, and returns it; `nil` if none can be.
  func promote(in shard: RedisShard) -> RedisHost? {
    if let sentinels {
      let next = sentinels.failOver()
      for host in sentinelHosts { host.settle() }
      return hosts.first { $0.server === next }
    }
    let candidates = shard.replicas.filter(\.isAwake)
    guard let cluster, let next = candidates.max(by: { $0.server.place < $1.server.place }) else {
      return nil
    }
    cluster.failOver(to: next.number)
    tell(about: next)
    return next
  }

  /// Lets the other nodes of a cluster hear one after the other what one of them knows.
  private func tell(about host: RedisHost) {
    for other in hosts where other !== host {
      schedule.after(dice.span(0.001, 0.3)) { [self] in cluster?.gossip(from: host.number, to: other.number) }
    }
  }

  /// Has a server follow the master of its shard.
  func reconfigure(_ host: RedisHost, in shard: RedisShard) {
    var link = sentinels?.reconfigure(host.server)
    if let cluster {
      cluster.gossip(from: shard.master.number, to: host.number)
      link = cluster.yield(host.number, to: shard.master.number)
      tell(about: shard.master)
    }
    if let link { shard.follow(link, host) }
  }

  /// The others find that a server is dead.
  func died(_ host: RedisHost) {
    guard let cluster else { return }
    schedule.after(dice.span(0.2, 1)) {
      if !host.server.isRunning { cluster.mark(host.number, isFailed: true) }
    }
  }

  func returned(_ host: RedisHost) {
    cluster?.mark(host.number, isFailed: false)
    guard cluster != nil else { return }
    // It has missed what others have told each other.
    for other in hosts where other !== host {
      schedule.after(dice.span(0.01, 0.5)) { [self] in cluster?.gossip(from: other.number, to: host.number) }
    }
  }

  /// Passes what was published on a node of a cluster to the others.
  func passMessages() {
    guard let cluster, !isPassing, cluster.hasMessages else { return }
    isPassing = true
    schedule.after(dice.span(0.00005, 0.0005)) { [self] in
      cluster.passMessages()
      isPassing = false
      for host in hosts { host.flush() }
    }
  }
}

// Faults that are no shard's.
extension RedisServers {
  /// One of the shards, by chance.
  func anyShard() -> RedisShard { shards[dice.below(shards.count)] }

  /// Takes back what was to happen to a server once it has a response.
  func stay() {
    for shard in shards { shard.stay() }
  }

  /// No server takes connections for a time.
  func refuse(for span: Span) {
    journal?("no server takes connections")
    for host in hosts { host.refuse(for: span) }
    schedule.note(15)
  }

  /// Sets the clocks of all servers.
  func stepClocks(by seconds: Int64) {
    journal?("the clocks of Redis are set by \(seconds) s")
    for host in hosts { host.server.clock.step(by: seconds * 1_000_000) }
    schedule.note(Int(seconds))
  }

  /// Moves the slot of a record to another master and back, key by key, while its records are used.
  func moveSlot(of id: String) {
    guard let cluster else { return }
    let slot = Self.slot(of: id)
    guard let home = shards.first(where: { $0.master.server.slots?.owners[slot] == $0.master.number })
    else { return }
    let others = shards.filter { $0 !== home }
    let target = others[dice.below(others.count)]
    guard target.isWhole else { return }
    home.trouble { homeIsOver in
      target.trouble { targetIsOver in
        journal?("slot \(slot) moves from server \(home.master.number) to \(target.master.number)")
        cluster.beginMigration(of: slot, from: home.master.number, to: target.master.number)
        move(slot, home, target) {
          homeIsOver()
          targetIsOver()
        }
      }
    }
  }

  private func move(
    _ slot: Int, _ home: RedisShard, _ target: RedisShard, _ isOver: @escaping () -> Void
  ) {
    let (source, goal) = (home.master, target.master)
    schedule.after(dice.span(0.01, 0.2)) { [self] in
      guard let cluster else { return }
      let left = cluster.moveKeys(
        of: slot, from: source.number, to: goal.number, limit: 1 + dice.below(2), at: source.now)
      source.settle()
      goal.settle()
      guard left == 0 else { return move(slot, home, target, isOver) }
      cluster.endMigration(of: slot, from: source.number, to: goal.number)
      journal?("slot \(slot) has moved to server \(goal.number)")
      tell(about: goal)
      isOver()
    }
  }
}
