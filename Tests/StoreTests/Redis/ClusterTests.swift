import Idempotency
import NIOCore
import Platform
import Store
import TestSupport
import Testing

/// A real cluster, while its nodes and slots come and go.
@Suite(.timeLimit(.minutes(2)), .serialized)
struct ClusterTests {
  @Test func `the slot map comes from the first node that replies`() async throws {
    let cluster = try await SharedCluster.cluster
    let ports = [FreePort.find(), FreePort.find(), cluster.masters[1].port]
    try await RedisNode.run(.on(ports, timeout: 5000)) { node in
      for _ in 0..<20 { _ = try await node.store.completed() }
      #expect(node.store.store.counters.isUsable)
    }
  }

  @Test func `no call waits beyond its time-out for a cluster that does not reply`() async throws {
    let frozen = try await RedisServer(clusterTimeout: .seconds(1), arguments: [])
    frozen.freeze()
    defer { frozen.thaw() }
    try await RedisNode.run(.on([FreePort.find(), frozen.port], timeout: 1000)) { node in
      let start = BootInstant.now.nanoseconds
      await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
      #expect(BootInstant.now.nanoseconds - start < 3_000_000_000)
    }
  }

  @Test func `a server that is no node of a cluster is named as such`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on([server.port], timeout: 1500)) { node in
      let error = await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
      guard case .unavailable(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(reason.contains("is no node of a cluster"), "\(reason)")
    }
  }

  @Test func `a slot moves key by key under load, and every key runs once`() async throws {
    let cluster = try await RedisCluster()
    try await RedisNode.run(.on(cluster.ports)) { node in
      // All in one slot: their tag is the ID, so IDs are drawn until they fall into it.
      let ids = Self.ids(8, inOneSlotOf: 0...5460)
      let slot = SlotNumber.of(ids[0])
      let open = try await withClaims(node, ids.prefix(5))
      let source = cluster.masters[0]
      let target = cluster.masters[2]
      let rest = Array(ids.dropFirst(5))
      var next = 0
      try await cluster.migrate(slot: slot, from: source, to: target) {
        for claim in open { #expect(try await node.store.renew(claim) == .done) }
        guard next < rest.count else { return }
        let request = Samples.request(rest[next])
        next += 1
        let claim = try await node.store.granted(request)
        #expect(claim.attempt == 1)
        #expect(try await node.store.claim(Samples.again(claim)).taken == .inFlight)
        #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      }
      #expect(next >= 2)
      for claim in open {
        #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      }
      for id in ids.prefix(5 + next) { #expect(try await node.store.find(id).name == .completed) }
    }
  }

  private func withClaims(_ node: RedisNode, _ ids: some Sequence<RecordID>) async throws -> [Claim] {
    var claims: [Claim] = []
    for id in ids { claims.append(try await node.store.granted(Samples.request(id))) }
    return claims
  }

  @Test func `without a slot's master only its keys are refused`() async throws {
    let cluster = try await RedisCluster(arguments: ["--cluster-require-full-coverage", "no"])
    try await RedisNode.run(.on(cluster.ports, timeout: 1500)) { node in
      for _ in 0..<10 { _ = try await node.store.completed() }
      cluster.masters[2].kill()
      let (served, lost) = (Self.id(in: 0...10922), Self.id(in: 10923...16383))
      let start = BootInstant.now.nanoseconds
      await #expect(throws: StoreError.self) { try await node.store.granted(Samples.request(lost)) }
      #expect(BootInstant.now.nanoseconds - start < 4_000_000_000)
      for _ in 0..<5 { _ = try await node.store.completed(Samples.request(Self.id(in: 0...10922))) }
      _ = try await node.store.completed(Samples.request(served))
    }
  }

  @Test func `a frozen master delays no command for another`() async throws {
    let cluster = try await RedisCluster()
    try await RedisNode.run(.on(cluster.ports, timeout: 3000)) { node in
      for _ in 0..<10 { _ = try await node.store.completed() }
      cluster.masters[2].freeze()
      defer { cluster.masters[2].thaw() }
      async let stuck = node.store.claim(Samples.request(Self.id(in: 10923...16383)))
      let start = BootInstant.now.nanoseconds
      for _ in 0..<20 { _ = try await node.store.find(Self.id(in: 0...10922)) }
      #expect(BootInstant.now.nanoseconds - start < 1_000_000_000)
      _ = try? await stuck
    }
  }

  @Test func `a request that meets a killed master waits for its replica`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    try await RedisNode.run(.on(cluster.ports)) { node in
      let before = try await node.store.completed(Samples.request(Self.id(in: 0...5460)))
      try cluster.masters[0].command(["WAIT", "1", "5000"])
      cluster.masters[0].kill()
      let start = BootInstant.now.nanoseconds
      #expect(try await node.store.granted(Samples.request(Self.id(in: 0...5460))).attempt == 1)
      // The node time-out and an election take some two seconds.
      #expect(BootInstant.now.nanoseconds - start < 8_000_000_000)
      #expect(try await node.store.find(before.id).name == .completed)
      try await until("the failover is counted") { node.subscriber.failovers == 1 }
    }
  }

  @Test func `a planned failover fails no request, and the subscription moves`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    try await RedisNode.run(.on(cluster.ports)) { node in
      let sibling = node.sibling()
      let open = try await node.store.granted(Samples.request(Self.id(in: 0...5460)))
      let watch = try await sibling.store.watch(open.id)
      async let load: Void = {
        for _ in 0..<200 { _ = try await node.store.completed(Samples.request(Self.id(in: 0...5460))) }
      }()
      try cluster.replicas[0][0].command(["CLUSTER", "FAILOVER"])
      try await until("the replica is promoted") { cluster.replicas[0][0].isMaster }
      try await load
      async let woken: Void = watch.changed(within: .seconds(20))
      #expect(try await node.store.complete(open, with: Samples.completion()).outcome == .done)
      await woken
      #expect(try await sibling.store.find(open.id).name == .completed)
      watch.cancel()
      sibling.close()
    }
  }

  @Test func `the list walks every master`() async throws {
    let cluster = try await SharedCluster.cluster
    try await RedisNode.run(.on(cluster.ports)) { node in
      var ids: Set<RecordID> = []
      for range in [0...5460, 5461...10922, 10923...16383] {
        for _ in 0..<4 { ids.insert(try await node.store.granted(Samples.request(Self.id(in: range))).id) }
      }
      var found: Set<RecordID> = []
      var cursor: String?
      var masters: Set<Substring> = []
      repeat {
        let part = try await node.store.list(after: cursor)
        found.formUnion(part.records.map(\.id))
        cursor = part.next
        if let cursor {
          #expect(node.store.isCursor(cursor))
          masters.insert(cursor.split(separator: "/")[1])
        }
      } while cursor != nil
      #expect(found == ids)
      #expect(masters.count >= 2)
    }
  }

  /// IDs whose slots lie in the range.
  private static func id(in range: ClosedRange<Int>) -> RecordID {
    while true {
      let id = Samples.id()
      if range.contains(SlotNumber.of(id)) { return id }
    }
  }

  private static func ids(_ count: Int, inOneSlotOf range: ClosedRange<Int>) -> [RecordID] {
    var bySlot: [Int: [RecordID]] = [:]
    while true {
      let id = Samples.id()
      let slot = SlotNumber.of(id)
      guard range.contains(slot) else { continue }
      bySlot[slot, default: []].append(id)
      if bySlot[slot]?.count == count { return bySlot[slot] ?? [] }
    }
  }
}
