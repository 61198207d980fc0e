import SimRedis

/// A master and its replicas. One of them fails at a time, and the next once all have everything: no store promises more.
final class RedisShard {
  let hosts: [RedisHost]
  private(set) var master: RedisHost
  private var replications: [RedisReplication] = []
  private unowned let servers: RedisServers
  private var dice: Dice
  /// Whether something happens to one of them.
  private var isTroubled = false
  /// The data of the master when somebody began to wait for a response that it gets; `nil` if nobody does.
  private var placeBefore: Int64?
  private var killBegins: () -> Void = {}
  /// The records that have lost a change for good.
  private var lost: Set<String> = []
  /// The servers that go on as masters although another one has taken over, and the places up to which both have the
  /// same: later changes will be lost.
  private var forks: [(host: RedisHost, place: Int64)] = []

  init(_ hosts: [RedisHost], of servers: RedisServers, _ dice: Dice) {
    self.hosts = hosts
    self.servers = servers
    self.dice = dice
    master = hosts[0]
    for host in hosts {
      host.didChange = { [unowned self, unowned host] in
        if host === master { lookForResponse() }
        for replication in replications where replication.follows(host) { replication.pump() }
        servers.passMessages()
      }
    }
  }

  private var schedule: Schedule { master.schedule }
  var replicas: [RedisHost] { hosts.filter { $0 !== master } }

  /// Has a server follow the master by a new link.
  func follow(_ link: SimReplicationLink, _ replica: RedisHost) {
    replications.removeAll { replication in
      guard replication.replica === replica else { return false }
      replication.end()
      return true
    }
    replications.append(
      RedisReplication(link, from: master, to: replica, Dice(dice.next())))
    replica.settle()
  }

  /// Whether every server is well, and each replica has everything.
  var isWhole: Bool {
    !isTroubled && forks.isEmpty && hosts.allSatisfy(\.isWell) && master.server.isMaster
      && replicas.allSatisfy { replica in
        replications.contains { $0.follows(master) && $0.replica === replica && $0.isWhole }
      }
  }

  /// Whether a change of a record was lost, or certainly will be.
  func hasLost(_ id: String) -> Bool {
    lost.contains(id) || forks.contains { Self.records(of: $0.host, after: $0.place).contains(id) }
  }

  private static func records(of host: RedisHost, after place: Int64) -> Set<String> {
    guard let keys = host.server.changedKeys(after: place) else {
      preconditionFailure("RedisShard: the log of changes is too short")
    }
    return records(of: keys)
  }

  private static func records(of keys: some Sequence<Bytes>) -> Set<String> {
    Set(keys.compactMap(RedisServers.record(of:)))
  }
}

// Faults.
extension RedisShard {
  /// Lets something happen, if all is well, and nothing else until it is over.
  func trouble(_ act: (_ isOver: @escaping () -> Void) -> Void) {
    guard isWhole else { return }
    isTroubled = true
    servers.didFail()
    act { [self] in
      servers.didFail()
      // The nodes of a cluster have to hear of it first.
      after(Span(seconds: 0.35)) { [self] in isTroubled = false }
    }
  }

  private func after(_ span: Span, _ act: @escaping () -> Void) { schedule.after(span, act) }

  /// Ends the master as soon as it has a response, the record of which follows.
  ///
  /// - Parameter begins: Called when it does.
  func killBehindResponse(_ begins: @escaping () -> Void) {
    placeBefore = master.server.place
    killBegins = begins
  }

  /// Takes that back.
  func stay() { (placeBefore, killBegins) = (nil, {}) }

  private func lookForResponse() {
    guard let before = placeBefore, before != master.server.place else { return }
    placeBefore = master.server.place
    guard master.server.changedKeys(after: before)?.contains(where: RedisServers.isResponse) == true else {
      return
    }
    placeBefore = nil
    // With the power all goes that is not synced, but the reply has to get away first.
    let isAll = master.server.settings.appendOnly == nil
    let loss = servers.canFailOver ? loss() : isAll ? .process : .power
    schedule.after(loss == .power ? dice.span(0.0002, 0.001) : dice.span(0, 0.0003)) { [self] in
      trouble { isOver in
        killBegins()
        let host = master
        // Whoever writes the record is still at it.
        if servers.canFailOver { return failOver(after: dice.span(0.01, 0.1), dyingBy: loss, isOver) }
        end(host, by: loss)
        after(dice.span(0.01, 0.1)) { [self] in
          restart(host)
          isOver()
        }
      }
    }
  }

  /// Ends a server, which comes back. A replica takes over from a master, or none does.
  func kill() {
    trouble { isOver in
      let host = dice.chance(0.7) ? master : hosts[dice.below(hosts.count)]
      if host === master, servers.canFailOver, dice.chance(0.6) {
        failOver(after: dice.span(0.3, 2), dyingBy: loss(), isOver)
      } else {
        end(host, by: loss())
        after(dice.span(0.05, 3)) { [self] in
          restart(host)
          isOver()
        }
      }
    }
  }

  private func loss() -> SimRedisServer.Loss { dice.chance(0.5) ? .process : .power }

  /// Ends a server, and notes what goes with it.
  private func end(_ host: RedisHost, by loss: SimRedisServer.Loss) {
    servers.journal?("server \(host.number) ends with its \(loss)")
    if host === master, host.server.settings.appendOnly == nil {
      lost.formUnion(Self.records(of: host.server.keys(at: host.now)))
    } else if host === master, loss == .power {
      lost.formUnion(Self.records(of: host.server.unsyncedKeys))
    }
    host.kill(loss)
    servers.died(host)
  }

  private func restart(_ host: RedisHost) {
    servers.journal?("server \(host.number) begins again")
    host.restart(isLoadingFor: dice.chance(0.3) ? dice.span(0.02, 0.8) : nil)
    servers.returned(host)
    servers.didFail()
  }

  /// Stops a server in the middle of what it does. From a master a replica may take over meanwhile.
  func freeze() {
    trouble { isOver in
      let host = dice.chance(0.7) ? master : hosts[dice.below(hosts.count)]
      host.freeze()
      let span = dice.span(0.05, 3)
      servers.journal?("server \(host.number) stands still for \(span.nanoseconds / 1_000_000) ms")
      if host === master, span.nanoseconds > 1_200_000_000, servers.canFailOver {
        after(Span(seconds: 1)) { [self] in promote() }
      }
      after(span) { [self] in
        host.thaw()
        settle(host, isOver)
      }
    }
  }

  /// A replica takes over from a master that lives.
  func failOver() {
    guard servers.canFailOver else { return }
    trouble { isOver in
      let former = master
      promote()
      settle(former, isOver)
    }
  }

  /// The master dies, and a replica takes over.
  private func failOver(
    after span: Span, dyingBy loss: SimRedisServer.Loss, _ isOver: @escaping () -> Void
  ) {
    let former = master
    end(former, by: loss)
    after(span) { [self] in
      promote()
      after(dice.span(0, 0.5)) { [self] in
        restart(former)
        if former !== master { forks.append((former, 0)) }
        settle(former, isOver)
      }
    }
  }

  /// Nothing more gets to the replicas, or to one of them; in half of the cases the master dies then.
  func cutReplication() {
    guard !replicas.isEmpty else { return }
    trouble { isOver in
      let cut = dice.chance(0.5) ? replications : [replications[dice.below(replications.count)]]
      let isLost = dice.chance(0.5)
      for replication in cut { replication.hold() }
      servers.journal?("\(cut.count) replicas of server \(master.number) get nothing more")
      after(dice.span(0.1, 2)) { [self] in
        guard servers.canFailOver, dice.chance(0.5) else {
          for replication in cut { replication.letGo(isLost: isLost) }
          return isOver()
        }
        failOver(after: dice.span(0.3, 1.5), dyingBy: loss()) {
          for replication in cut where !replication.isOver { replication.letGo(isLost: isLost) }
          isOver()
        }
      }
    }
  }

  /// The master takes no changes: its memory or its disk is full.
  func fill() {
    trouble { isOver in
      let (server, isDisk) = (master.server, dice.chance(0.5))
      servers.journal?("server \(master.number) has no room")
      if isDisk { server.diskFault = "No space left on device" } else { server.maxMemory = 1 }
      after(dice.span(0.05, 2)) {
        (server.diskFault, server.maxMemory) = (nil, nil)
        isOver()
      }
    }
  }

  func flushScripts() { hosts[dice.below(hosts.count)].server.forgetScripts() }

}

// The choice of the master.
extension RedisShard {
  /// Makes a replica the master. It may lack what the former master has done since.
  private func promote() {
    let former = master
    guard let next = servers.promote(in: self) else { return }
    schedule.note(14)
    servers.promotions.append((schedule.now, former.number, next.number))
    servers.journal?("server \(next.number) takes over from \(former.number)")
    master = next
    if placeBefore != nil { placeBefore = next.server.place }
    for replication in replications where replication.replica === next { replication.end() }
    replications.removeAll(where: \.isOver)
    let place = next.server.place
    if former.server.isRunning {
      forks.append((former, place))
    } else {
      lost.formUnion(Self.records(of: former, after: place))
    }
    next.settle()
    for other in replicas where other !== former && other.isAwake { servers.reconfigure(other, in: self) }
  }

  /// Has a former master that is back follow the present one after a while.
  private func settle(_ host: RedisHost, _ isOver: @escaping () -> Void) {
    guard host !== master else { return isOver() }
    after(dice.span(0.05, 1)) { [self] in
      for fork in forks where fork.host === host {
        lost.formUnion(Self.records(of: host, after: fork.place))
      }
      forks.removeAll { $0.host === host }
      servers.reconfigure(host, in: self)
      servers.journal?("server \(host.number) follows \(master.number)")
      isOver()
    }
  }
}
