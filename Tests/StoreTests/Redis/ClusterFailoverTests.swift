import Idempotency
import Platform
import Store
import TestSupport
import Testing
import Wire

/// A real cluster whose masters die, are replaced, or are cut off from the others.
@Suite(.timeLimit(.minutes(2)), .serialized)
struct ClusterFailoverTests {
  @Test func `requests that meet a killed master wait for its replica`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    var (master, heir) = (cluster.masters[0], cluster.replicas[0][0])
    try await RedisNode.run(.on(cluster.ports)) { node in
      let before = try await node.store.completed(Samples.request(SlotNumber.id(in: 0...5460)))
      var failovers = 0
      // The time that passes between the promotion of the replica and the first claim there.
      try await Pace.within(.seconds(2)) {
        let open = try await node.store.granted(Samples.request(SlotNumber.id(in: 0...5460)))
        try await master.awaitCopies(at: [heir])
        // All of these claims are on their way when it dies.
        master.freeze()
        let written = node.store.store.counters.roundTrips
        async let claims = Self.grants(40, of: 0...5460, by: node)
        try await until("the claims are written") { node.store.store.counters.roundTrips >= written + 40 }
        let dead = master
        let next = heir
        async let promotion = Pace.time(of: "the promotion") { next.isMaster }
        dead.kill()
        let request = Samples.request(SlotNumber.id(in: 0...5460))
        let (later, end) = try await node.store.context.run {
          (try await node.store.store.granted(request), BootInstant.now)
        }
        let span = try await end - promotion
        for claim in try await claims + [later] {
          #expect(claim.attempt == 1)
          #expect(try await node.store.renew(claim) == .done)
          #expect(try await node.store.claim(Samples.again(claim)).taken == .inFlight)
        }
        #expect(try await node.store.complete(open, with: Samples.completion()).outcome == .done)
        #expect(try await node.store.find(before.id).name == .completed)
        #expect(node.store.store.counters.suspects == 0)
        failovers += 1
        try await until("the failover is counted") { node.subscriber.failovers == failovers }
        #expect(node.subscriber.lossCount == 0)
        // For another round, in which the other one dies.
        try await master.start()
        (master, heir) = (heir, master)
        try await until("the former master follows") { try master.isFollowed(by: heir) }
        return span
      }
    }
  }

  /// Claims of as many new records at once.
  private static func grants(
    _ count: Int, of slots: ClosedRange<Int>, by node: RedisNode
  ) async throws -> [Claim] {
    try await withThrowingTaskGroup(of: Claim.self) { group in
      for _ in 0..<count {
        group.addTask { try await node.store.granted(Samples.request(SlotNumber.id(in: slots))) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  @Test func `a claim that the promoted replica of a cluster lacks is counted as suspect`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let (master, heir) = (cluster.masters[0], cluster.replicas[0][0])
    try await RedisNode.run(.on(cluster.ports)) { node in
      let alarms = Watched(0)
      node.subscriber.observeAlarms { alarms.withValue { $0 += 1 } }
      let kept = try await node.store.granted(Samples.request(SlotNumber.id(in: 0...5460)))
      try await master.awaitCopies(at: [heir])
      // Its next attempts to follow fail.
      try heir.command(["CONFIG", "SET", "masterauth", "wrong"])
      try master.command(["CLIENT", "KILL", "TYPE", "replica"])
      try await until("the replica is cut off") {
        try master.command(["INFO", "replication"])?.contains("state=online") == false
      }
      let lost = try await node.store.granted(Samples.request(SlotNumber.id(in: 0...5460)))
      master.kill()
      try await alarms.until("the owners renew", within: .seconds(30)) { $0 > 0 ? true : nil }
      #expect(try await node.store.renew(kept) == .done)
      #expect(node.store.store.counters.suspects == 0)
      #expect(try await node.store.renew(lost) == .done)
      #expect(node.store.store.counters.suspects == 1)
      #expect(try await node.store.claim(Samples.again(lost)).taken == .inFlight)
      try await until("the failover is counted") { node.subscriber.failovers == 1 }
      #expect(node.subscriber.lossCount == 0)
    }
  }

  /// The promoted server may lack what was cached, and another node run the request again.
  @Test func `cached outcomes are dropped when another master takes over, wherever the subscription is`()
    async throws
  {
    let cluster = try await RedisCluster(replicas: 1)
    try await RedisNode.run(.on(cluster.ports)) { node in
      let events = Watched<[RedisSubscriber.Event]>([])
      node.subscriber.observe { event in
        if case .heard = event { return }
        events.withValue { $0.append(event) }
      }
      // Nothing is cached before.
      try await events.until("invalidations arrive", within: .seconds(30)) { $0.last == .up ? true : nil }
      for range in [0...5460, 5461...10922, 10923...16383] {
        _ = try await node.store.completed(Samples.request(SlotNumber.id(in: range)))
      }
      let channel = "\(node.settings.namespace):invalidate"
      let fallen = try #require(
        try cluster.masters.first { try $0.command(["PUBSUB", "NUMSUB", channel])?.hasSuffix(":0") == true })
      let connections = node.subscriber.counters.connections
      #expect(events.value == [.up])
      fallen.kill()
      try await events.until("the outcomes are dropped", within: .seconds(30)) {
        $0.contains(.down) ? true : nil
      }
      // The subscription itself was not lost, which would have done it, too.
      #expect(node.subscriber.counters.connections == connections)
    }
  }

  @Test func `a planned failover fails no request, and subscriptions move as well`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    var (master, heir) = (cluster.masters[0], cluster.replicas[0][0])
    try await RedisNode.run(.on(cluster.ports)) { node in
      let sibling = node.sibling()
      let open = try await node.store.granted(Samples.request(SlotNumber.id(in: 0...5460)))
      let watch = try await sibling.store.watch(open.id)
      try await Pace.within(.seconds(2)) {
        let load = Load()
        let call: @Sendable () async throws -> Void = {
          _ = try await node.store.completed(Samples.request(SlotNumber.id(in: 0...5460)))
        }
        try await load.run(by: 6, on: node.store.context.executor, call) {
          try await load.reached(50)
          try await Self.promote(heir)
          try await load.reached(load.count + 50)
        }
        (master, heir) = (heir, master)
        try await until("the former master follows") { try master.isFollowed(by: heir) }
        return load.longestPause
      }
      #expect(try await node.store.renew(open) == .done)
      try await until("the subscription has moved") {
        // A node learns of the switch by its next command.
        _ = try await sibling.store.find(open.id)
        let left = try heir.command(["PUBSUB", "NUMSUB", node.key(of: open.id)])
        return left?.hasSuffix(":0") == true && sibling.subscriber.counters.connections >= 2
      }
      async let ended = StoreWatchTests.wait(watch, for: open.id, on: sibling.store) { $0 == .completed }
      #expect(try await node.store.complete(open, with: Samples.completion()).outcome == .done)
      #expect(try await ended == .completed)
      #expect(node.store.store.counters.suspects == 0)
      #expect(node.subscriber.lossCount == 0)
      watch.cancel()
      sibling.close()
    }
  }

  /// Has a replica take over by plan. Redis abandons a plan after five seconds, as where the other masters have voted
  /// shortly before, and says so nowhere: it is asked again then, and no sooner, since that begins anew.
  private static func promote(_ replica: RedisServer) async throws {
    var deadline = ContinuousClock.now
    try await until("the replica is promoted") {
      if replica.isMaster { return true }
      if ContinuousClock.now >= deadline {
        try replica.command(["CLUSTER", "FAILOVER"])
        deadline = .now + .seconds(6)
      }
      return false
    }
  }

  @Test func `a waiter whose subscription was killed learns of the end all the same`() async throws {
    let cluster = try await RedisCluster()
    try await RedisNode.run(.on(cluster.ports)) { node in
      let sibling = node.sibling()
      for range in [0...5460, 5461...10922, 10923...16383] {
        let claim = try await node.store.granted(Samples.request(SlotNumber.id(in: range)))
        let watch = try await sibling.store.watch(claim.id)
        let channel = "\(node.settings.namespace):{\(claim.id.text)}"
        let carriers = try cluster.masters.filter {
          try $0.command(["PUBSUB", "NUMSUB", channel])?.hasSuffix(":1") == true
        }
        #expect(carriers.count == 1)
        for carrier in carriers { try carrier.command(["CLIENT", "KILL", "TYPE", "pubsub"]) }
        #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
        let name = try await StoreWatchTests.wait(watch, for: claim.id, on: sibling.store) {
          $0 == .completed
        }
        #expect(name == .completed)
        watch.cancel()
      }
      #expect(sibling.subscriber.counters.connections >= 2)
      sibling.close()
    }
  }

  @Test func `a master that is alone grants nothing, and what it refused runs once later`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let master = cluster.masters[0]
    var settings = RedisEndpointSettings.on(cluster.ports, timeout: .seconds(4))
    settings.demand = ReplicaDemand(replicas: 1)
    settings.failoverGrace = 100
    try await RedisNode.run(settings) { node in
      let running = try await node.store.granted(Samples.request(SlotNumber.id(in: 0...5460)))
      let others = cluster.all.filter { $0.port != master.port }
      for other in others { other.freeze() }
      let requests = (0..<2).map { _ in Samples.request(SlotNumber.id(in: 0...5460)) }
      // Its replica does not confirm the first one; before the second one it knows that it has lost the others.
      for request in requests {
        await #expect(throws: StoreError.self) { try await node.store.claim(request) }
      }
      await #expect(throws: StoreError.self) {
        try await node.store.complete(running, with: Samples.completion())
      }
      for other in others { other.thaw() }
      for request in requests {
        try await until("a claim is granted again") {
          guard let claim = try? await node.store.granted(request) else { return false }
          #expect(claim.attempt == 1)
          return true
        }
      }
      try await until("the outcome is stored") {
        (try? await node.store.complete(running, with: Samples.completion()))?.outcome == .done
      }
      #expect(node.store.store.counters.suspects == 0)
    }
  }
}
