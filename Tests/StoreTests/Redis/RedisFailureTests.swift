import Idempotency
import NIOCore
import Platform
import Store
import TestSupport
import Testing
import Wire

/// The result of a call when Redis, or the way to it, fails under it.
@Suite(.timeLimit(.minutes(1)))
struct RedisFailureTests {
  @Test func `a claim sent to a frozen Redis claims nothing once it thaws`() async throws {
    let server = try await RedisServer()
    let patient = RedisEndpointSettings.on(server)
    var settings = patient
    settings.timeout = 300
    try await RedisNode.run(settings) { node in
      for _ in 0..<5 {
        try await node.reconnected()
        let request = Samples.request()
        server.freeze()
        let error = await #expect(throws: StoreError.self) { try await node.store.claim(request) }
        guard case .fateUnknown = error else { throw Unexpected(what: "\(error as Any)") }
        // The deadline is the store's, and its clock is this machine's: once it is over here, it is over there.
        server.thaw()
        try await node.reconnected()
        let sibling = RedisNode(patient)
        let claim = try await sibling.store.granted(
          Samples.request(request.id, fingerprint: request.fingerprint))
        #expect(claim.attempt == 1)
        #expect(claim.owner != request.owner)
        #expect(try await sibling.store.complete(claim, with: Samples.completion()).outcome == .done)
        sibling.close()
      }
    }
  }

  /// After a lost connection nothing is taken over for some seconds. A released record is free all the same, also one
  /// that follows an unknown outcome.
  @Test func `a released record is claimed as soon as Redis is back`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let lost = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(lost) == .done)
      let second = try await node.store.granted(Samples.again(lost, takeOver: .afterSettle(0)))
      #expect(second.followsUnknown)
      #expect(try await node.store.release(second, .remembered) == .done)
      _ = try server.command(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
      try await until("the connection was lost and is back") { node.store.store.counters.reconnections > 0 }
      try await node.reconnected()
      let third = try await node.store.granted(Samples.again(lost, takeOver: .afterSettle(0)))
      #expect(third.attempt == 3)
      // An unknown one is not.
      #expect(try await node.store.markUnknown(third) == .done)
      let outcome = try await node.store.claim(Samples.again(lost, takeOver: .afterSettle(0)))
      #expect(outcome.taken == .unknown)
    }
  }

  @Test
  func `a Redis that ends the connection in the middle of a large write loses no other command for good`()
    async throws
  {
    let server = try await RedisServer(arguments: ["--proto-max-bulk-len", "1mb"])
    try await RedisNode.run(.on(server, timeout: 2000)) { node in
      let large = Samples.response(body: String(repeating: "x", count: 3 << 20))
      let claim = try await node.store.granted(Samples.request())
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask {
            // Redis answers others: the outcome is kept without what it does not take.
            let reply = try await node.store.complete(claim, with: Samples.completion(.whole(large)))
            #expect(reply.outcome == .done)
          }
          group.addTask { for _ in 0..<50 { _ = try await node.store.completed() } }
        }
        try await group.waitForAll()
      }
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
    }
  }

  @Test func `a record is not completed before Redis has taken its response`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      let large = Samples.completion(.whole(Samples.response(body: String(repeating: "x", count: 1 << 20))))
      let used = try server.command(["INFO", "memory"])?.split(whereSeparator: \.isNewline)
        .first { $0.hasPrefix("used_memory:") }?.split(separator: ":").last.flatMap { Int($0) }
      // Room for the script, and none for the response.
      try server.command(["CONFIG", "SET", "maxmemory", "\(try #require(used) + (600 << 10))"])
      await #expect(throws: StoreError.self) { try await node.store.complete(claim, with: large) }
      #expect(try await node.store.find(claim.id).name == .inFlight)
      try server.command(["CONFIG", "SET", "maxmemory", "0"])
      #expect(try await node.store.complete(claim, with: large).outcome == .done)
      guard case .completed(let record) = try await node.store.find(claim.id) else {
        throw Unexpected(what: "no completed record")
      }
      #expect(record.outcome == large.outcome)
    }
  }

  @Test func `a full Redis still replays`() async throws {
    let server = try await RedisServer(arguments: ["--maxmemory-policy", "noeviction"])
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      try server.command(["CONFIG", "SET", "maxmemory", "1"])
      guard case .taken(.completed) = try await node.store.claim(Samples.again(claim)) else {
        throw Unexpected(what: "no replay")
      }
      await #expect(throws: StoreError.self) { try await node.store.claim(Samples.request()) }
      try server.command(["CONFIG", "SET", "maxmemory", "0"])
    }
  }

  @Test func `a resolution sent to a frozen Redis changes nothing once it thaws`() async throws {
    let server = try await RedisServer()
    var settings = RedisEndpointSettings.on(server)
    settings.timeout = 300
    try await RedisNode.run(settings) { node in
      try await node.reconnected()
      let claim = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(claim) == .done)
      server.freeze()
      await #expect(throws: StoreError.self) { try await node.store.resolve(claim.id, as: .notApplied) }
      server.thaw()
      try await node.reconnected()
      #expect(try await node.store.find(claim.id).name == .unknown)
      #expect(try await node.store.resolve(claim.id, as: .notApplied) == .done)
    }
  }

  @Test func `a claim whose reply was cut is repeated and granted to the same owner`() async throws {
    let server = try await SharedRedis.server
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server), relayed: relay.port) { node in
      for count in [0, 1, 5] {
        try await node.reconnected()
        relay.set(.cut(after: count))
        let request = Samples.request()
        let claim = try await node.store.granted(request)
        #expect(claim.attempt == 1)
        #expect(claim.owner == request.owner)
        #expect(try await node.store.find(claim.id).name == .inFlight)
      }
      #expect(node.store.store.counters.connections >= 4)
    }
    await relay.close()
  }

  @Test func `a repeated claim states until when its first copy may yet run`() async throws {
    let server = try await SharedRedis.server
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server), relayed: relay.port) { node in
      try await node.reconnected()
      let single = try await node.store.granted(Samples.request())
      #expect(single.copiedUntil == nil)
      relay.set(.cut(after: 0))
      let start = BootInstant.now
      let repeated = try await node.store.granted(Samples.request())
      let timeout = RedisEndpointSettings.on(server).timeout
      let copiedUntil = try #require(repeated.copiedUntil)
      #expect(copiedUntil >= start + timeout)
      #expect(copiedUntil <= BootInstant.now + timeout)
    }
    await relay.close()
  }

  @Test
  func `a claim that was repeated and refused is not forgotten while its first copy may yet be granted`()
    async throws
  {
    let server = try await RedisServer()
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server, timeout: 2000), relayed: relay.port) { node in
      let sibling = node.sibling()
      try await node.reconnected()
      let first = try await sibling.store.granted(Samples.request())
      let before = try server.scriptCount
      relay.set(.haunt)
      async let outcome = node.store.claim(Samples.again(first))
      // The second copy is told that another has the record; then that one gives it back, and the first copy arrives.
      while try server.scriptCount == before { await Task.yield() }
      #expect(relay.isHaunted)
      #expect(try await sibling.store.release(first, .remembered) == .done)
      relay.release()
      guard case .granted(let claim) = try await outcome else { throw Unexpected(what: "not granted") }
      #expect(claim.attempt == 2)
      #expect(try await node.store.release(claim, .remembered) == .done)
      sibling.close()
    }
    await relay.close()
  }

  @Test func `every command may be repeated when its reply was cut`() async throws {
    let server = try await SharedRedis.server
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server), relayed: relay.port) { node in
      func cut<T>(_ call: () async throws -> T) async throws -> T {
        try await node.reconnected()
        relay.set(.cut(after: 0))
        return try await call()
      }
      let completed = try await node.store.granted(Samples.request())
      #expect(try await cut { try await node.store.renew(completed) } == .done)
      #expect(try await cut { try await node.store.markUnknown(completed) } == .done)
      let reply = try await cut { try await node.store.complete(completed, with: Samples.completion()) }
      #expect(reply.outcome == .done)
      #expect(try await cut { try await node.store.find(completed.id) }.name == .completed)
      #expect(try await cut { try await node.store.forget(completed.id, fence: .seconds(60)) })
      for release in [Release.remembered, .deleted] {
        let claim = try await node.store.granted(Samples.request())
        #expect(try await cut { try await node.store.release(claim, release) } == .done)
      }
      for resolution in [Resolution.notApplied, .applied(Samples.completion())] {
        let claim = try await node.store.lapsed()
        #expect(try await cut { try await node.store.resolve(claim.id, as: resolution) } == .done)
      }
    }
    await relay.close()
  }

  @Test func `a reply that never comes leaves the fate unknown, and the connection is given up`() async throws
  {
    let server = try await SharedRedis.server
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server, timeout: 3000), relayed: relay.port) { node in
      try await node.reconnected()
      let claim = try await node.store.granted(Samples.request())
      let before = node.store.store.counters.connections
      relay.set(.vanish)
      await #expect(throws: StoreError.fateUnknown("Redis did not reply in 3000 ms")) {
        try await node.store.complete(claim, with: Samples.completion())
      }
      #expect(relay.vanishedCount > 0)
      relay.set(.pass)
      try await node.reconnected()
      #expect(node.store.store.counters.connections > before)
      // It had been run, and the repetition under the same token is told so.
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      #expect(try await node.store.find(claim.id).name == .completed)
    }
    await relay.close()
  }

  @Test func `concurrent calls on a cut connection all get their own replies`() async throws {
    let server = try await SharedRedis.server
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server), relayed: relay.port) { node in
      try await node.reconnected()
      relay.set(.cut(after: 333))
      try await withThrowingTaskGroup { group in
        for index in 0..<300 {
          group.addTask {
            let response = Samples.response(body: "response \(index)")
            let claim = try await node.store.completed(with: Samples.completion(.whole(response)))
            let record = try await node.store.find(claim.id).completedRecord
            #expect(record?.outcome == .whole(response))
          }
        }
        try await group.waitForAll()
      }
    }
    await relay.close()
  }

  @Test func `a Redis that restarts with its file has lost nothing`() async throws {
    let server = try await RedisServer(appendOnly: true)
    try await RedisNode.run(.on(server)) { node in
      let completed = try await node.store.completed()
      let open = try await node.store.granted(Samples.request())
      server.kill()
      async let found = node.store.find(completed.id)
      try await server.start()
      #expect(try await found.completedRecord?.outcome == .whole(Samples.response()))
      #expect(try await node.store.complete(open, with: Samples.completion()).outcome == .done)
      #expect(try await node.store.find(open.id).completedRecord?.attempt == 1)
    }
  }

  @Test func `an owner records its outcome in a Redis that restarted empty`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let open = try await node.store.granted(Samples.request())
      try await server.restart()
      try await node.reconnected()
      #expect(try await node.store.complete(open, with: Samples.completion()).outcome == .done)
      #expect(try await node.store.claim(Samples.again(open)).taken == .completed)
    }
  }

  @Test func `a missing Redis is unavailable, and fails calls at once in a long outage`() async throws {
    var settings = RedisEndpointSettings(address: .tcp(host: "127.0.0.1", port: FreePort.find()))
    settings.timeout = 100
    try await RedisNode.run(settings) { node in
      var reason = ""
      while !reason.contains("cannot be reached") {
        let error = await #expect(throws: StoreError.self) { try await node.store.claim(Samples.request()) }
        guard case .unavailable(let text) = error else { throw Unexpected(what: "\(error as Any)") }
        reason = text
      }
      // The outage is older than a call may take from here on.
      try await Task.sleep(nanoseconds: 100_000_000)
      // On the loop itself, so that no other test's threads are waited for.
      let store = node.store.store
      let taken = await node.store.context.run {
        let started = BootInstant.now.nanoseconds
        for _ in 0..<20 { await #expect(throws: StoreError.self) { try await store.find(Samples.id()) } }
        return BootInstant.now.nanoseconds - started
      }
      #expect(taken < 20 * 100_000_000)
      let error = await #expect(throws: StoreError.self) { try await node.store.watch(Samples.id()) }
      guard case .unavailable = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(node.store.store.counters.usable == 0)
    }
  }

  @Test func `scripts that Redis has forgotten are sent again`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      for _ in 0..<2 {
        try server.command(["SCRIPT", "FLUSH"])
        #expect(try await node.store.renew(claim) == .done)
      }
      try server.command(["SCRIPT", "FLUSH"])
      #expect(try await node.store.granted(Samples.request()).attempt == 1)
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
    }
  }

  @Test(arguments: [
    (["CONFIG", "SET", "maxmemory", "1"], "raise its maxmemory"),
    (["REPLICAOF", "127.0.0.1", "1"], "read-only replica"),
    (["CONFIG", "SET", "min-replicas-to-write", "1"], "too few replicas"),
  ])
  func `a Redis that refuses is unavailable, and the error names the remedy`(
    _ cause: [String], _ advice: String
  ) async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      try server.command(cause)
      let calls: [() async throws -> Void] = [
        { _ = try await node.store.claim(Samples.request()) },
        { _ = try await node.store.complete(claim, with: Samples.completion()).outcome },
      ]
      for call in calls {
        let error = await #expect(throws: StoreError.self) { try await call() }
        guard case .unavailable(let text) = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(text.contains(advice))
      }
      #expect(try await node.store.find(claim.id).name == .inFlight)
    }
  }
}

extension RedisNode {
  /// Waits until the store's connection stands.
  func reconnected() async throws {
    let giveUp = BootInstant.now.nanoseconds + 30_000_000_000
    while true {
      do throws(StoreError) { return try await store.ping() } catch {
        guard BootInstant.now.nanoseconds < giveUp else { throw error }
        try await Task.sleep(nanoseconds: 3_000_000)
      }
    }
  }
}
