import Idempotency
import NIOCore
import Platform
import Store
import Synchronization
import TestSupport
import Testing

/// Claims and completions that count once a replica has them, on a real master and its replica.
@Suite(.timeLimit(.minutes(2)))
struct ReplicaTests {
  /// The installed Redis, and the other servers of the environment.
  private static let servers = [OtherRedis?.none] + OtherRedis.available.map { $0 }
  /// The time of a call that is refused because the replica is missing, which a grant on a busy machine does not reach.
  private static let shortTime: Milliseconds = .seconds(4)

  @Test func `what is granted, completed and renewed is at the replica`() async throws {
    let pair = try await ReplicaPair()
    try await RedisNode.run(pair.settings()) { node in
      for _ in 0..<20 {
        let claim = try await node.store.granted(Samples.request())
        #expect(try pair.replica.text(of: claim, node).contains("in_flight"))
        #expect(try await node.store.renew(claim) == .done)
        #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
        #expect(try pair.replica.text(of: claim, node).contains("completed"))
      }
    }
    await pair.close()
  }

  @Test func `without the replica no claim is granted, and nothing of one stays`() async throws {
    let pair = try await ReplicaPair()
    try await RedisNode.run(pair.settings(timeout: Self.shortTime)) { node in
      _ = try await node.store.completed()
      pair.relay.set(.vanish)
      let request = Samples.request()
      try await node.expectRefusal(of: request)
      #expect(try pair.master.command(["EXISTS", node.key(of: request.id)]) == ":0")
      // From now on it is known.
      let before = try pair.master.scriptCount
      for _ in 0..<10 { try await node.expectRefusal(of: Samples.request()) }
      #expect(try pair.master.scriptCount == before)
      #expect(node.store.store.counters.usable == 0)
      pair.restore()
      try await until("claims are granted again") {
        (try? await node.store.granted(Samples.request())) != nil
      }
      // The replica may be behind once more while it catches up.
      try await until("the refused request is granted as if for the first time") {
        (try? await node.store.granted(request))?.attempt == 1
      }
    }
    await pair.close()
  }

  @Test func `without the replica an unknown record that would be taken over stays unknown`() async throws {
    let pair = try await ReplicaPair()
    try await RedisNode.run(pair.settings(timeout: Self.shortTime)) { node in
      let first = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(first) == .done)
      pair.relay.set(.vanish)
      try await node.expectRefusal(of: Samples.again(first, takeOver: .afterSettle(0)))
      #expect(try pair.master.text(of: first, node).contains("unknown"))
      pair.restore()
      try await until("the record's state is reported again") {
        guard let outcome = try? await node.store.claim(Samples.again(first)) else { return false }
        guard case .taken(.unknown(_, attempt: 2)) = outcome else { throw Unexpected(what: "\(outcome)") }
        return true
      }
    }
    await pair.close()
  }

  @Test(arguments: [Release.remembered, .uncounted])
  func `a claim that is given back for want of a replica counts as its request says`(_ release: Release)
    async throws
  {
    let pair = try await ReplicaPair()
    try await RedisNode.run(pair.settings(timeout: Self.shortTime)) { node in
      let first = try await node.store.granted(Samples.request())
      #expect(try await node.store.release(first, .remembered) == .done)
      pair.relay.set(.vanish)
      try await node.expectRefusal(of: Samples.again(first, unusedRelease: release))
      pair.restore()
      var next: Claim?
      try await until("the record is granted again") {
        next = try? await node.store.granted(Samples.again(first, unusedRelease: release))
        return next != nil
      }
      let claim = try #require(next)
      // Each refusal, of which there may be more than one, has raised both.
      #expect(claim.uncountedAttempts == (release == .uncounted ? claim.attempt - 2 : 0))
      #expect(claim.attempt > 2)
    }
    await pair.close()
  }

  @Test func `a stopped replica is missed as well`() async throws {
    let pair = try await ReplicaPair()
    try await RedisNode.run(pair.settings(timeout: Self.shortTime)) { node in
      _ = try await node.store.completed()
      pair.replica.kill()
      try await node.expectRefusal(of: Samples.request())
      try await pair.replica.start()
      try await until("claims are granted again") {
        (try? await node.store.granted(Samples.request())) != nil
      }
    }
    await pair.close()
  }

  @Test func `an owner's change without the replica is repeated until it is there`() async throws {
    let pair = try await ReplicaPair()
    try await RedisNode.run(pair.settings(timeout: Self.shortTime)) { node in
      let claim = try await node.store.granted(Samples.request())
      pair.relay.set(.vanish)
      let calls: [() async throws -> Void] = [
        { _ = try await node.store.renew(claim) },
        { _ = try await node.store.complete(claim, with: Samples.completion()) },
        { _ = try await node.store.forget(Samples.id(), fence: 0) },
      ]
      for call in calls.prefix(2) {
        let error = await #expect(throws: StoreError.self) { try await call() }
        guard case .fateUnknown(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(reason.contains("fewer than 1 replica of Redis"), "\(reason)")
      }
      // There was nothing to forget, so that nothing can be lost.
      try await calls[2]()
      pair.restore()
      try await until("the outcome is stored") {
        (try? await node.store.complete(claim, with: Samples.completion()))?.outcome == .done
      }
      #expect(try pair.replica.text(of: claim, node).contains("completed"))
    }
    await pair.close()
  }

  @Test(arguments: servers)
  func `a completed record is replayed once it is at the replica`(_ kind: OtherRedis?) async throws {
    let pair = try await ReplicaPair(kind)
    try await RedisNode.run(pair.settings(timeout: Self.shortTime)) { node in
      let old = try await node.store.completed()
      let since = try #require(try await node.store.find(old.id).completedRecord?.recordedAt)
      try await until("the old one is proven with a later one") {
        try await node.store.granted(Samples.request()).firstSeen > since
      }
      let sibling = RedisNode(pair.carefree(node))
      pair.relay.set(.vanish)
      let new = try await sibling.store.completed()
      // Its owner has a reply that counts: this one demands nothing.
      #expect(try await node.store.claim(Samples.again(old)).taken == .completed)
      try await node.expectRefusal(of: Samples.again(new))
      pair.restore()
      try await until("the new one is replayed, too") {
        (try? await node.store.claim(Samples.again(new)))?.taken == .completed
      }
      sibling.close()
    }
    await pair.close()
  }

  @Test(arguments: servers)
  func `no script reports an outcome that is not at the replica`(_ kind: OtherRedis?) async throws {
    let pair = try await ReplicaPair(kind)
    try await RedisNode.run(pair.settings(timeout: Self.shortTime)) { node in
      let (stale, own) = (try await node.store.lapsed(), try await node.store.granted(Samples.request()))
      let sibling = RedisNode(pair.carefree(node))
      pair.relay.set(.vanish)
      let new = try await sibling.store.completed(Samples.again(stale, takeOver: .afterSettle(0)))
      // No replica is awaited for what reports no outcome.
      #expect(try await node.store.find(own.id).name == .inFlight)
      #expect(try await node.store.release(own, .remembered) == .done)
      async let found = Self.failure(of: { _ = try await node.store.find(new.id) })
      async let released = Self.failure(of: { _ = try await node.store.release(stale, .remembered) })
      async let marked = Self.failure(of: { _ = try await node.store.markUnknown(stale) })
      let reason = "fewer than 1 replica of Redis have the newest changes (store.replicas)"
      let errors = await [found, released, marked]
      #expect(errors == [.refused(reason), .fateUnknown(reason), .fateUnknown(reason)])
      pair.restore()
      try await until("the outcome is found") {
        (try? await node.store.find(new.id))?.completedRecord?.attempt == 2
      }
      #expect(try await node.store.release(stale, .remembered).lost == .completed)
      #expect(try await node.store.markUnknown(stale).lost == .completed)
      sibling.close()
    }
    await pair.close()
  }

  /// The reply to an earlier copy was lost: this one finds the change made.
  @Test(arguments: servers)
  func `what was changed by an earlier copy counts once it is at the replica`(_ kind: OtherRedis?)
    async throws
  {
    let pair = try await ReplicaPair(kind)
    try await RedisNode.run(pair.settings(timeout: Self.shortTime)) { node in
      let sibling = RedisNode(pair.carefree(node))
      let claim = try await node.store.granted(Samples.request())
      pair.relay.set(.vanish)
      #expect(try await sibling.store.complete(claim, with: Samples.completion()).outcome == .done)
      // It writes nothing of its own on this connection.
      let reason = "fewer than 1 replica of Redis have the newest changes (store.replicas)"
      let error = await Self.failure {
        _ = try await node.store.complete(claim, with: Samples.completion())
      }
      #expect(error == .fateUnknown(reason))
      pair.restore()
      try await until("it counts") {
        (try? await node.store.complete(claim, with: Samples.completion()))?.outcome == .done
      }
      #expect(try pair.replica.text(of: claim, node).contains("completed"))
      sibling.close()
    }
    await pair.close()
  }

  @Test func `a fence that is made longer counts once it is at the replica`() async throws {
    let pair = try await ReplicaPair()
    try await RedisNode.run(pair.settings(timeout: Self.shortTime)) { node in
      let id = try await node.store.completed().id
      let forget: @Sendable (Milliseconds) async throws -> Bool = { fence in
        try await node.store.forget(id, fence: fence)
      }
      #expect(try await forget(.seconds(60)))
      #expect(try await forget(.seconds(60)) == false)
      pair.relay.set(.vanish)
      let error = await Self.failure(of: { _ = try await forget(.seconds(600)) })
      #expect(
        error == .fateUnknown("fewer than 1 replica of Redis have the newest changes (store.replicas)"))
      pair.restore()
      try await until("it counts") { (try? await forget(.seconds(600))) == false }
      let left = try pair.replica.command(["PTTL", node.key(of: id)]) ?? ""
      #expect(Int(left.dropFirst()).map { $0 > 60_000 } == true, "\(left)")
    }
    await pair.close()
  }

  /// The error of a call; `nil` if it throws none of a store.
  private static func failure(of call: @Sendable () async throws -> Void) async -> StoreError? {
    do {
      try await call()
      return nil
    } catch {
      return error as? StoreError
    }
  }

  @Test func `replication that is cut amid claims leaves none behind that was granted`() async throws {
    let pair = try await ReplicaPair()
    var settings = pair.settings(timeout: Self.shortTime)
    for isDemanding in [true, false] {
      if !isDemanding { settings.demand = nil }
      try await RedisNode.run(settings) { node in
        try await node.reconnected()
        let granted = Mutex<[Claim]>([])
        let claim: @Sendable () async -> Void = {
          guard let claim = try? await node.store.granted(Samples.request()) else { return }
          let count = granted.withLock { granted in
            granted.append(claim)
            return granted.count
          }
          // In the midst of the others.
          if count == 100 { pair.relay.set(.vanish) }
        }
        await withTaskGroup { group in for _ in 0..<300 { group.addTask { await claim() } } }
        for _ in 0..<5 { await claim() }
        let claims = granted.withLock { $0 }
        #expect(claims.count >= 100)
        let lost = try claims.count { try pair.replica.text(of: $0, node).isEmpty }
        // Else the test shows nothing.
        if isDemanding { #expect(lost == 0) } else { #expect(lost >= 5 && claims.count == 305) }
      }
      pair.restore()
      try await until("the replica follows") { try pair.isFollowed }
    }
    await pair.close()
  }

  @Test func `one wait serves a batch of claims`() async throws {
    let pair = try await ReplicaPair()
    let durations = Watched<[Int64]>([])
    // A wait that is cut short would be followed by another: each lasts a quarter of it.
    try await RedisNode.run(pair.settings(timeout: .seconds(60))) { node in
      try await node.reconnected()
      let before = try pair.master.calls(of: "wait")
      let granted = Watched(0)
      node.store.context.loop.execute {
        for _ in 0..<500 {
          node.store.store.startClaim(Samples.request()) { reply in
            if case .success(.granted) = reply { granted.withValue { $0 += 1 } }
          }
        }
      }
      try await granted.until("all grants", within: .seconds(60)) { $0 == 500 ? $0 : nil }
      #expect(try pair.master.calls(of: "set") >= 500)
      #expect(try pair.master.calls(of: "wait") == before + 1)
      // It is reported after the replies that it has held.
      try await durations.until("the wait's duration") { $0.isEmpty ? nil : true }
      #expect(durations.value.count == 1)
    } didWait: { microseconds in
      durations.withValue { $0.append(microseconds) }
    }
    await pair.close()
  }

  @Test(arguments: servers)
  func `the disk is waited for at a server that can, and another one is named`(_ kind: OtherRedis?)
    async throws
  {
    let server = try await RedisServer(program: kind?.program, appendOnly: true)
    var settings = RedisEndpointSettings.on(server)
    settings.demand = ReplicaDemand(replicas: 0, isOnDisk: true)
    let canWait = try server.knows("waitaof")
    #expect(canWait || kind != .valkey9)
    try await RedisNode.run(settings) { node in
      guard !canWait else {
        let claim = try await node.store.granted(Samples.request())
        #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
        // The first one is the handshake's.
        #expect(try server.calls(of: "waitaof") >= 3)
        return
      }
      let error = await #expect(throws: StoreError.self) { try await node.store.granted(Samples.request()) }
      guard case .unavailable(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(reason.contains("this server has no WAITAOF"), "\(reason)")
    }
  }
}
