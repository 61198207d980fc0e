import Idempotency
import Platform
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Store

/// Another server that takes over from a master.
@Suite(.timeLimit(.minutes(2)))
struct FailoverTests {
  private let start = BootInstant(nanoseconds: 1_000_000_000)

  private func history(_ id: String, after former: String = String(repeating: "0", count: 40)) throws
    -> ReplicationHistory
  {
    try #require(
      ReplicationHistory(
        .text("# Replication\r\nrole:master\r\nmaster_replid:\(id)\r\nmaster_replid2:\(former)\r\n")))
  }

  @Test func `a server that has followed a known one was promoted`() throws {
    var lineage = ReplicationLineage()
    func promotion(_ id: String, after former: String? = nil, at now: BootInstant) throws
      -> ReplicationLineage.Promotion?
    {
      lineage.met(try former.map { try history(id, after: $0) } ?? history(id), at: now)
    }
    // The last two restarted without their history, or belong to somebody else.
    let others = [
      try promotion("a", at: start), try promotion("a", at: start), try promotion("b", at: start),
      try promotion("c", after: "x", at: start),
    ]
    #expect(others == [nil, nil, nil, nil])
    let first = try promotion("d", after: "a", at: start)
    #expect(first == ReplicationLineage.Promotion(at: start, isNew: true))
    let again = try promotion("d", after: "a", at: start + 5)
    #expect(again == ReplicationLineage.Promotion(at: start, isNew: false))
    let second = try promotion("e", after: "d", at: start + 9)
    #expect(second?.isNew == true)
    #expect(ReplicationHistory(.error("NOPERM")) == nil)
  }

  @Test func `claims that a promoted replica lacks are renewed at once, and counted`() async throws {
    let pair = try await ReplicaPair()
    let front = try await RedisRelay(to: pair.master.port)
    var settings = RedisEndpointSettings.on(pair.master)
    settings.address = .tcp(host: "127.0.0.1", port: front.port)
    try await RedisNode.run(settings) { node in
      let alarms = Mutex(0)
      node.subscriber.observeAlarms { alarms.withLock { $0 += 1 } }
      let kept = try await node.store.granted(Samples.request())
      try await until("the replica has it") {
        try pair.replica.command(["EXISTS", node.key(of: kept.id)]) == ":1"
      }
      pair.relay.set(.vanish)
      let lost = try await node.store.granted(Samples.request())
      pair.master.kill()
      try pair.replica.command(["REPLICAOF", "NO", "ONE"])
      front.lead(to: pair.replica.port)
      try await until("the owners renew") { alarms.withLock { $0 } > 0 }
      #expect(try await node.store.renew(kept) == .done)
      #expect(node.store.store.counters.suspects == 0)
      #expect(try await node.store.renew(lost) == .done)
      #expect(node.store.store.counters.suspects == 1)
      #expect(try await node.store.claim(Samples.again(lost)).taken == .inFlight)
      // It is not taken for a loss of all records.
      #expect(node.subscriber.lossCount == 0)
      for text in ["another Redis has taken over", "no longer had a running request's claim"] {
        try await until("a line of the log") { node.log.messages.contains { $0.contains(text) } }
      }
    }
    await front.close()
    await pair.close()
  }

  @Test func `a completion that finds its claim gone is counted, too`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      try server.command(["FLUSHALL"])
      let reply = try await node.store.complete(claim, with: Samples.completion())
      #expect(reply.outcome == .done && reply.record != nil)
      #expect(node.store.store.counters.suspects == 1)
      #expect(try await node.store.claim(Samples.again(claim)).taken == .completed)
    }
  }

  @Test func `where replicas are demanded, new claims wait at a promoted one`() async throws {
    let servers = try await Succession()
    try await RedisNode.run(servers.settings(grace: .seconds(5))) { node in
      let claim = try await node.store.granted(Samples.request())
      let alarmedAt = Mutex<Int64>(0)
      node.subscriber.observeAlarms { alarmedAt.withLock { if $0 == 0 { $0 = BootInstant.now.nanoseconds } } }
      try await servers.succeed()
      async let granted = node.store.granted(Samples.request())
      try await until("the owners renew") { alarmedAt.withLock { $0 } > 0 }
      #expect(try await node.store.renew(claim) == .done)
      let renewedAt = BootInstant.now.nanoseconds
      _ = try await granted
      let grantedAt = BootInstant.now.nanoseconds
      // The grace began shortly before the alarm.
      #expect(grantedAt - alarmedAt.withLock { $0 } > 4_000_000_000)
      #expect(renewedAt < grantedAt)
      #expect(node.store.store.counters.suspects == 0)
    }
    await servers.close()
  }

  @Test(arguments: [60, -60] as [Int64])
  func `no live lease lapses at a promoted server with another clock, and none lasts longer`(_ seconds: Int64)
    async throws
  {
    let clock = try await SteppedClock()
    try clock.set(ahead: seconds)
    let servers = try await Succession(heirClock: clock)
    try await RedisNode.run(servers.settings(grace: .seconds(5))) { node in
      let owner = RedisNode(node.settings)
      let lease = Milliseconds.seconds(50)
      let live = try await owner.store.granted(Samples.request().changed(lease: lease))
      let renewals = Watched(0)
      owner.subscriber.observeAlarms {
        owner.store.context.task {
          if (try? await owner.store.store.renew(live)) == .done { renewals.withValue { $0 += 1 } }
        }
      }
      try await servers.succeed()
      try await renewals.until("the owner has renewed by the new time") { $0 > 0 ? $0 : nil }
      let outcome = try await node.store.claim(Samples.again(live, takeOver: .afterSettle(0)))
      guard case .taken(.inFlight(let left, _)) = outcome else { throw Unexpected(what: "\(outcome)") }
      #expect(left <= lease)
      #expect(try await owner.store.complete(live, with: Samples.completion()).outcome == .done)
      owner.close()
    }
    await servers.close()
  }

  @Test func `no record is taken over at a promoted server before its owner can send no more`() async throws {
    let clock = try await SteppedClock()
    try clock.set(ahead: 60)
    let servers = try await Succession(heirClock: clock)
    var settings = servers.settings(grace: 100)
    // Nothing is taken over for some seconds and two calls after the connection is back.
    settings.timeout = .seconds(4)
    try await RedisNode.run(settings) { node in
      let owner = RedisNode(node.settings)
      // By the new server's clock it has lapsed, and its owner does not renew it.
      let live = try await owner.store.granted(Samples.request().changed(lease: .seconds(50)))
      _ = try await node.store.find(live.id)
      try await servers.succeed()
      let again = Samples.again(live, takeOver: .afterSettle(0))
      #expect(try await node.store.claim(again).taken == .unknown)
      #expect(try await node.store.claim(again).taken == .unknown)
      // A claim with a shorter lease stands for a route whose owners have ended by then.
      try await until("records are taken over again") {
        guard case .granted(let claim) = try await node.store.claim(again.changed(lease: .seconds(2))) else {
          return false
        }
        return claim.attempt == 2 && claim.followsUnknown
      }
      owner.close()
    }
    await servers.close()
  }

  @Test(arguments: [false, true])
  func `a response that the promoted server lacks is written there with its record`(isOfOperator: Bool)
    async throws
  {
    let servers = try await Succession()
    let (master, heir) = (servers.pair.master, servers.pair.replica)
    try await RedisNode.run(servers.settings(grace: 100)) { node in
      let claim = try await node.store.granted(Samples.request())
      if isOfOperator { #expect(try await node.store.markUnknown(claim) == .done) }
      try await until("the replica has the record") {
        try heir.text(of: claim, node).contains(isOfOperator ? "unknown" : "in_flight")
      }
      try await until("the subscription stands") { node.subscriber.counters.usable > 0 }
      servers.pair.relay.set(.vanish)
      servers.front.set(.holdAfter(reply: "+OK"))
      let large = Samples.completion(.whole(Samples.response(body: String(repeating: "x", count: 9000))))
      async let outcome =
        isOfOperator
        ? node.store.resolve(claim.id, as: .applied(large))
        : node.store.complete(claim, with: large).outcome
      // The former master has acknowledged the response, and gets nothing more.
      try await until("the record's script is on its way") { servers.front.isHolding }
      #expect(try master.command(["KEYS", "\(node.key(of: claim.id)):r:*"]) != "")
      try await servers.promote()
      servers.front.set(.pass)
      servers.front.lead(to: heir.port)
      #expect(try await outcome == .done)
      #expect(try await node.store.find(claim.id).completedRecord?.outcome == large.outcome)
      #expect(try await node.store.claim(Samples.again(claim)).taken == .completed)
    }
    await servers.close()
  }

  @Test func `a master that is cut off from the others grants nothing, and is left`() async throws {
    let servers = try await Succession()
    let pair = servers.pair
    let sentinel = try SilentSentinel(naming: pair.master)
    var settings = RedisEndpointSettings.orders(by: [sentinel.port], timeout: .seconds(4))
    settings.demand = ReplicaDemand(replicas: 1)
    settings.failoverGrace = 100
    try await RedisNode.run(settings) { node in
      let running = try await node.store.granted(Samples.request())
      pair.relay.set(.vanish)
      try await servers.promote()
      let request = Samples.request()
      try await node.expectRefusal(of: request)
      await #expect(throws: StoreError.self) {
        try await node.store.complete(running, with: Samples.completion())
      }
      #expect(try pair.master.command(["EXISTS", node.key(of: request.id)]) == ":0")
      sentinel.name(pair.replica)
      try await until("a claim is granted by the new master") {
        (try? await node.store.granted(request))?.attempt == 1
      }
      #expect(try await node.store.complete(running, with: Samples.completion()).outcome == .done)
      #expect(try pair.replica.text(of: running, node).contains("completed"))
      // Nothing was written to the old one.
      #expect(try pair.master.command(["EXISTS", node.key(of: request.id)]) == ":0")
    }
    await servers.close()
  }
}
