import Idempotency
import NIOCore
import Platform
import Store
import TLS
import TestSupport
import Testing
import Wire

/// A real cluster, while its slots come and go.
@Suite(.timeLimit(.minutes(2)), .serialized)
struct ClusterTests {
  @Test func `the slot map comes from the first node that replies`() async throws {
    let cluster = try await SharedCluster.cluster
    let ports = [FreePort.find(), FreePort.find(), cluster.masters[1].port]
    try await RedisNode.run(.on(ports, timeout: 5000)) { node in
      for _ in 0..<20 { _ = try await node.store.completed() }
      #expect(node.store.store.counters.usable > 0)
    }
  }

  @Test func `no call waits beyond its time-out for a cluster that does not reply`() async throws {
    let frozen = try await RedisServer(clusterTimeout: .seconds(1), arguments: [])
    frozen.freeze()
    defer { frozen.thaw() }
    try await RedisNode.run(.on([FreePort.find(), frozen.port], timeout: 2000)) { node in
      let start = BootInstant.now.nanoseconds
      await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
      #expect(BootInstant.now.nanoseconds - start < 10_000_000_000)
    }
  }

  @Test func `a server that is no node of a cluster is named as such`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on([server.port], timeout: 4000)) { node in
      let error = await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
      guard case .unavailable(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(reason.contains("is no node of a cluster"), "\(reason)")
    }
  }

  @Test func `a slot moves key by key under load, and every key runs once`() async throws {
    let cluster = try await RedisCluster()
    try await RedisNode.run(.on(cluster.ports)) { node in
      let sibling = node.sibling()
      // All in one slot: their tag is the ID, so IDs are drawn until they fall into it.
      let ids = Self.ids(20, inOneSlotOf: 0...5460)
      // So short that they lapse meanwhile, were they not renewed.
      let lease = Milliseconds.seconds(4)
      let open = try await withClaims(node, ids.prefix(4), lease: lease)
      // Their responses stand under keys of their own, which move by themselves.
      let large = String(repeating: "x", count: 100_000)
      let old = try await node.store.completed(
        Samples.request(ids[4]), with: Samples.completion(.whole(Samples.response(body: large))))
      let begun = BootInstant.now
      var rest = Array(ids.dropFirst(5))
      var ended = [(old, large)]
      try await cluster.migrate(
        slot: SlotNumber.of(ids[0]), from: cluster.masters[0], to: cluster.masters[2]
      ) {
        async let renewed: Void = Self.renew(open, by: node, seenBy: sibling)
        let pairs = rest.prefix(2).enumerated().map { ($1, $0 == 0 ? large : "small") }
        rest = Array(rest.dropFirst(2))
        ended += try await Self.complete(pairs, by: node, seenBy: sibling)
        for (claim, body) in ended {
          let found = try await sibling.store.find(claim.id).completedRecord?.outcome
          #expect(found == .whole(Samples.response(body: body)))
        }
        try await renewed
        // Time passes for the leases.
        try await Task.sleep(for: .milliseconds(600))
      }
      #expect(BootInstant.now - begun > lease)
      #expect(ended.count >= 7)
      for claim in open {
        #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      }
      for (claim, body) in ended {
        let found = try await node.store.find(claim.id).completedRecord?.outcome
        #expect(found == .whole(Samples.response(body: body)))
        #expect(try await node.store.claim(Samples.again(claim)).taken == .completed)
      }
      let redirects = node.store.store.counters.redirects.filter { ["moved", "ask"].contains($0.kind) }
      #expect(redirects.allSatisfy { $0.count > 0 }, "\(redirects)")
      sibling.close()
    }
  }

  /// Renews claims at once, whose leases must not have lapsed.
  private static func renew(
    _ claims: [Claim], by node: RedisNode, seenBy sibling: RedisNode
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for claim in claims {
        group.addTask { () async throws in
          #expect(try await sibling.store.find(claim.id).name == .inFlight)
          #expect(try await node.store.renew(claim) == .done)
          #expect(try await sibling.store.claim(Samples.again(claim)).taken == .inFlight)
        }
      }
      try await group.waitForAll()
    }
  }

  /// Runs requests at once, each with a response of its own.
  private static func complete(
    _ requests: [(RecordID, String)], by node: RedisNode, seenBy sibling: RedisNode
  ) async throws -> [(Claim, String)] {
    try await withThrowingTaskGroup(of: (Claim, String).self) { group in
      for (id, body) in requests {
        group.addTask { () async throws in
          let claim = try await node.store.granted(Samples.request(id))
          #expect(claim.attempt == 1)
          #expect(try await sibling.store.claim(Samples.again(claim)).taken == .inFlight)
          let completion = Samples.completion(.whole(Samples.response(body: body)))
          #expect(try await node.store.complete(claim, with: completion).outcome == .done)
          return (claim, body)
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  @Test func `every end of a record is reached at either node of a slot that is on its way`() async throws {
    let cluster = try await RedisCluster()
    try await RedisNode.run(.on(cluster.ports)) { node in
      let ends = StoreWatchTests.End.allCases
      let ids = Self.ids(2 * ends.count, inOneSlotOf: 0...5460)
      let claims = try await withClaims(node, ids, lease: .seconds(60))
      let (source, target, slot) = (cluster.masters[0], cluster.masters[2], SlotNumber.of(ids[0]))
      var left = claims
      try await cluster.migrate(slot: slot, from: source, to: target) {
        // Before the first key moves, and after the last one.
        let isEmpty = try source.command(["CLUSTER", "COUNTKEYSINSLOT", "\(slot)"]) == ":0"
        guard left.count == claims.count || isEmpty, !left.isEmpty else { return }
        try await Self.end(left.prefix(ends.count), at: node)
        left.removeFirst(ends.count)
      }
      #expect(left.isEmpty)
      for (claim, end) in zip(claims, ends + ends) {
        #expect(try await node.store.find(claim.id).name == Self.state(after: end), "\(end)")
      }
      let redirects = node.store.store.counters.redirects
      #expect(redirects.contains { $0.kind == "ask" && $0.count > 0 }, "\(redirects)")
      // Either node refuses a command with two keys of which one is elsewhere, or nowhere, until the slot has moved.
      #expect(redirects.contains { $0.kind == "try_again" && $0.count == 0 }, "\(redirects)")
    }
  }

  /// Renews claims, and ends each in another way.
  private static func end(_ claims: ArraySlice<Claim>, at node: RedisNode) async throws {
    for (claim, end) in zip(claims, StoreWatchTests.End.allCases) {
      #expect(try await node.store.renew(claim) == .done)
      if end == .resolve { #expect(try await node.store.markUnknown(claim) == .done) }
      try await end.run(claim, on: node.store)
      #expect(try await node.store.find(claim.id).name == state(after: end), "\(end)")
    }
  }

  private static func state(after end: StoreWatchTests.End) -> Standing.Name {
    switch end {
    case .complete: .completed
    case .release, .resolve: .released
    case .delete, .forget: .absent
    case .markUnknown: .unknown
    }
  }

  private func withClaims(
    _ node: RedisNode, _ ids: some Sequence<RecordID>, lease: Milliseconds
  ) async throws -> [Claim] {
    var claims: [Claim] = []
    for id in ids { claims.append(try await node.store.granted(Samples.request(id, lease: lease))) }
    return claims
  }

  @Test func `without a slot's master only its keys are refused`() async throws {
    let cluster = try await RedisCluster(arguments: ["--cluster-require-full-coverage", "no"])
    try await RedisNode.run(.on(cluster.ports, timeout: 4000)) { node in
      for _ in 0..<10 { _ = try await node.store.completed() }
      cluster.masters[2].kill()
      let (served, lost) = (SlotNumber.id(in: 0...10922), SlotNumber.id(in: 10923...16383))
      let start = BootInstant.now.nanoseconds
      await #expect(throws: StoreError.self) { try await node.store.granted(Samples.request(lost)) }
      #expect(BootInstant.now.nanoseconds - start < 12_000_000_000)
      for _ in 0..<5 { _ = try await node.store.completed(Samples.request(SlotNumber.id(in: 0...10922))) }
      _ = try await node.store.completed(Samples.request(served))
    }
  }

  @Test func `a frozen master delays no command for another`() async throws {
    // The others must not take it for dead meanwhile.
    let cluster = try await RedisCluster(arguments: ["--cluster-node-timeout", "60000"])
    try await RedisNode.run(.on(cluster.ports)) { node in
      for _ in 0..<10 { _ = try await node.store.completed() }
      cluster.masters[2].freeze()
      defer { cluster.masters[2].thaw() }
      let stuck = Watched<ClaimReply?>(nil)
      let request = Samples.request(SlotNumber.id(in: 10923...16383))
      // It is on its way before the others.
      try await node.store.context.loop.submit {
        node.store.store.startClaim(request) { reply in stuck.withValue { $0 = reply } }
      }.get()
      for _ in 0..<20 { _ = try await node.store.find(SlotNumber.id(in: 0...10922)) }
      #expect(stuck.value == nil)
      cluster.masters[2].thaw()
      guard case .success(.granted) = try await stuck.until("the reply", { $0 }) else {
        throw Unexpected(what: "\(stuck.value as Any)")
      }
    }
  }

  @Test func `the nodes of a cluster are reached over TLS by their hosts' names`() async throws {
    let certificates = try await Certificates()
    // No address is in it: the host's name is what is verified.
    let pair = try await certificates.issue("server", subject: "/CN=localhost", names: ["DNS:localhost"])
    var ports: [Int] = []
    let cluster = try await RedisCluster(
      arguments: [
        "--tls-cluster", "yes", "--tls-cert-file", pair.certificate, "--tls-key-file", pair.key,
        "--tls-ca-cert-file", certificates.authority, "--tls-auth-clients", "no",
        "--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname",
      ]
    ) {
      ports.append(FreePort.find())
      return ["--tls-port", "\(ports.last ?? 0)"]
    }
    var settings = RedisEndpointSettings.on([ports[0]])
    settings.topology = .cluster([.tcp(host: "localhost", port: ports[0])])
    settings.login.tls = try ClientTLS(ClientTLSFiles(ca: certificates.authority))
    try await RedisNode.run(settings) { node in
      for range in [0...5460, 5461...10922, 10923...16383] {
        let claim = try await node.store.granted(Samples.request(SlotNumber.id(in: range)))
        let watch = try await node.store.watch(claim.id)
        async let ended = StoreWatchTests.wait(watch, for: claim.id, on: node.store) { $0 == .completed }
        #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
        #expect(try await ended == .completed)
        watch.cancel()
      }
      let masters = ports.map { "localhost:\($0) (up)" }.sorted().joined(separator: ", ")
      #expect(node.store.store.counters.topology == "cluster, masters \(masters)")
      #expect(cluster.masters.count == 3)
    }
  }

  @Test func `the nodes of a cluster share the count of open records`() async throws {
    let cluster = try await SharedCluster.cluster
    try await RedisNode.run(.on(cluster.ports)) { node in
      let sibling = node.sibling()
      let boards = [node, sibling].map { $0.store.store }
      let (own, other) = (OwnerToken.random(), OwnerToken.random())
      #expect(try await boards[0].lastCount() == nil)
      #expect(try await boards[0].takeTurn(own, for: .seconds(60)))
      #expect(try await boards[0].takeTurn(own, for: .seconds(60)))
      #expect(try await boards[1].takeTurn(other, for: .seconds(60)) == false)
      try await boards[0].post("count", for: .seconds(60))
      #expect(try await boards[1].lastCount() == "count")
      sibling.close()
    }
  }

  @Test func `the list walks every master`() async throws {
    let cluster = try await SharedCluster.cluster
    try await RedisNode.run(.on(cluster.ports)) { node in
      var ids: Set<RecordID> = []
      for range in [0...5460, 5461...10922, 10923...16383] {
        for _ in 0..<4 {
          ids.insert(try await node.store.granted(Samples.request(SlotNumber.id(in: range))).id)
        }
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

  @Test func `the records of a slot that moves are listed and found all the while`() async throws {
    let cluster = try await RedisCluster()
    try await RedisNode.run(.on(cluster.ports)) { node in
      let ids = Self.ids(3, inOneSlotOf: 0...5460)
      let origin = Samples.attribution()
      _ = try await node.store.granted(Samples.request(ids[0], attribution: origin))
      _ = try await node.store.completed(Samples.request(ids[1], attribution: origin))
      // Its response stands under a key of its own, which moves by itself.
      let large = Samples.response(body: String(repeating: "x", count: 100_000))
      _ = try await node.store.completed(
        Samples.request(ids[2], attribution: origin), with: Samples.completion(.whole(large)))
      let filter = RecordFilter(keyDigests: [try #require(origin.keyDigest)])
      let slot = SlotNumber.of(ids[0])
      try await cluster.migrate(slot: slot, from: cluster.masters[0], to: cluster.masters[2]) {
        let (found, open) = (try await node.store.found(filter), try await node.store.open())
        let unreadable = try await node.store.unreadable()
        #expect(found == Set(ids) && Set(open.keys) == [ids[0]] && unreadable.isEmpty)
      }
      #expect(try await node.store.found(filter) == Set(ids))
    }
  }

  @Test func `a search fails rather than leave out a record that no node reads`() async throws {
    let cluster = try await RedisCluster()
    try await RedisNode.run(.on(cluster.ports)) { node in
      let origin = Samples.attribution()
      let id = SlotNumber.id(in: 0...5460)
      _ = try await node.store.granted(Samples.request(id, attribution: origin))
      let filter = RecordFilter(keyDigests: [try #require(origin.keyDigest)])
      let (source, target, slot) = (cluster.masters[0], cluster.masters[2], "\(SlotNumber.of(id))")
      try await cluster.migrate(slot: SlotNumber.of(id), from: source, to: target) {
        guard try source.command(["CLUSTER", "COUNTKEYSINSLOT", slot]) == ":0" else { return }
        // It refuses the key that it has, since it does not know any more that the slot is on its way to it.
        try target.command(["CLUSTER", "SETSLOT", slot, "STABLE"])
        let error = await #expect(throws: StoreError.self) { try await node.store.found(filter) }
        guard case .unavailable(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(reason.contains("point to each other"), "\(reason)")
        try target.command(["CLUSTER", "SETSLOT", slot, "IMPORTING", try source.clusterID])
        #expect(try await node.store.found(filter) == [id])
      }
    }
  }

  /// Ids of records of one slot.
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
