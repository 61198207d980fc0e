import Idempotency
import NIOCore
import Platform
import Store
import TestSupport
import Testing
import Wire

/// The form of records in Redis, and the connection to it.
@Suite(.timeLimit(.minutes(1)))
struct RedisStoreTests {
  @Test func `a record with a longer memory leaves its response under a key that ends before it`()
    async throws
  {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let request = Samples.request(
        fingerprint: Samples.fingerprint(Recipe(ignore: [.json("/sent at")])), lease: 1000,
        unknownRetention: 20_000, remember: 300_000)
      let claim = try await node.store.granted(request)
      let key = "\(node.settings.namespace):{\(claim.id.text)}"
      let first = claim.firstSeen.milliseconds
      let digest = claim.fingerprint.digest.text
      let owner = hexadecimal(claim.owner)
      #expect(
        try server.command(["GET", key])
          == "1 \(owner) in_flight 1 \(first) \(first) 1000 20000 300000 o \(digest) 2;auto;i=/sent%20at")
      #expect(try live(key, server, below: 321_000))
      let response = RecordedResponse(
        status: 201, fields: ByteBuffer(string: "A: b\r\nLOCATION:  /orders/7\r\n"),
        body: ByteBuffer(string: "x"))
      let completion = Samples.completion(.whole(response), retention: 60_000, remember: 150_000)
      #expect(try await node.store.complete(claim, with: completion).outcome == .done)
      let record = try await node.store.find(claim.id).completedRecord
      let recorded = try #require(record?.recordedAt.milliseconds)
      #expect(
        try server.command(["GET", key])
          == "1 \(owner) completed 1 \(recorded - first) \(recorded) 60000 0 150000 b \(digest) "
          + "2;auto;i=/sent%20at 201 /orders/7")
      #expect(try live(key, server, below: 150_000))
      // It is written before its record and read after it, and must not end before that.
      #expect(try live("\(key):r:\(owner)", server, below: 60_000 + 60_000))
      #expect(record?.outcome == .whole(response))
      // Evicted: the record tells still how it ended.
      try server.command(["DEL", "\(key):r:\(owner)"])
      #expect(
        try await node.store.find(claim.id).completedRecord?.outcome
          == .statusOnly(status: 201, location: "/orders/7"))
    }
  }

  private func live(_ key: String, _ server: RedisServer, below limit: Int) throws -> Bool {
    let left = Int(try server.command(["PTTL", key])?.dropFirst() ?? "") ?? -1
    return left > limit - 10_000 && left <= limit
  }

  @Test func `a first run takes two round trips, and a replay one`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      try await node.store.ping()
      let before = node.store.store.counters.roundTrips
      let claim = try await node.store.completed()
      #expect(node.store.store.counters.roundTrips == before + 2)
      #expect(try await node.store.claim(Samples.again(claim)).taken == .completed)
      #expect(node.store.store.counters.roundTrips == before + 3)
    }
  }

  @Test func `a completion returns the record only if it wrote it`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let claim = try await node.store.granted(Samples.request())
      let reply = try await node.store.complete(claim, with: Samples.completion())
      #expect(reply.outcome == .done)
      let found = try #require(try await node.store.find(claim.id).completedRecord)
      let returned = try #require(reply.record)
      #expect(returned.remaining >= found.remaining)
      #expect(returned.outcome == found.outcome && returned.attempt == found.attempt)
      #expect(returned.recordedAt == found.recordedAt && returned.expiresAt == found.expiresAt)
      let again = try await node.store.complete(claim, with: Samples.completion(retention: 1))
      #expect(again == CompletionReply(outcome: .done, record: nil))
    }
  }

  @Test(arguments: ["2 something new", "", "1 short", "1 abc asleep 1 1 1 1 1 1 - x y"])
  func `an unreadable record is an error, and stays`(_ text: String) async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      let key = "\(node.settings.namespace):{\(claim.id.text)}"
      try server.command(["SET", key, text])
      let calls: [() async throws -> Void] = [
        { _ = try await node.store.claim(Samples.again(claim)) },
        { _ = try await node.store.renew(claim) },
        { _ = try await node.store.complete(claim, with: Samples.completion()).outcome },
        { _ = try await node.store.release(claim, .deleted) },
        { _ = try await node.store.markUnknown(claim) },
        { _ = try await node.store.find(claim.id) },
        { _ = try await node.store.resolve(claim.id, as: .notApplied) },
      ]
      for call in calls {
        let error = await #expect(throws: StoreError.self) { try await call() }
        guard case .unreadable = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(try server.command(["GET", key]) == text)
      }
      #expect(try await node.store.unreadable() == [claim.id])
      // The operator's way out.
      #expect(try await node.store.forget(claim.id, fence: .seconds(60)))
      #expect(try await node.store.renew(claim) == .lost(.absent))
      #expect(try await node.store.unreadable().isEmpty)
      #expect(try await node.store.forget(claim.id, fence: 0) == false)
      try server.command(["DEL", key])
      #expect(try await node.store.granted(Samples.again(claim)).attempt == 1)
    }
  }

  @Test func `an unreadable response is an error, and so is a key of another type`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.completed(with: Samples.completion(remember: .seconds(1300)))
      let key = "\(node.settings.namespace):{\(claim.id.text)}"
      try server.command(["SET", "\(key):r:\(hexadecimal(claim.owner))", "\u{2}later"])
      for _ in 0..<2 {
        let error = await #expect(throws: StoreError.self) {
          try await node.store.claim(Samples.again(claim))
        }
        guard case .unreadable = error else { throw Unexpected(what: "\(error as Any)") }
        try server.command(["DEL", key])
        try server.command(["LPUSH", key, "a list"])
      }
      #expect(try await node.store.unreadable() == [claim.id])
      #expect(try await node.store.forget(claim.id, fence: .seconds(60)))
      #expect(try await node.store.granted(Samples.again(claim)).attempt == 1)
    }
  }

  @Test func `an older copy of a claim does not reclaim a released record`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let claim = try await node.store.granted(Samples.request())
      #expect(try await node.store.release(claim, .remembered) == .done)
      let error = await #expect(throws: StoreError.self) {
        try await node.store.claim(Samples.again(claim, owner: claim.owner))
      }
      guard case .unavailable = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(try await node.store.find(claim.id) == .released(attempt: 1))
    }
  }

  @Test(arguments: ["forget", "forget twice", "release over a fence"])
  func `an older copy of a claim does not undo a forget`(_ ending: String) async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      var claim = try await node.store.granted(Samples.request())
      #expect(try await node.store.forget(claim.id, fence: .seconds(60)))
      switch ending {
      case "forget twice": #expect(try await node.store.forget(claim.id, fence: .seconds(90)) == false)
      case "release over a fence":
        claim = try await node.store.granted(Samples.again(claim))
        #expect(try await node.store.release(claim, .deleted) == .done)
      default: break
      }
      let error = await #expect(throws: StoreError.self) {
        try await node.store.claim(Samples.again(claim, owner: claim.owner))
      }
      guard case .unavailable = error else { throw Unexpected(what: "\(error as Any)") }
      _ = try await node.store.complete(claim, with: Samples.completion())
      #expect(try await node.store.find(claim.id) == .absent)
      #expect(try await node.store.granted(Samples.again(claim)).attempt == claim.attempt + 1)
    }
  }

  @Test func `user, password, database and unix socket are used`() async throws {
    let server = try await RedisServer(arguments: [
      "--requirepass", "secret", "--user", "semel", "on", ">word", "~*", "&*", "+@all",
    ])
    var settings = RedisEndpointSettings.on(server)
    settings.address = .unix(path: server.socketPath)
    settings.database = 3
    settings.login.password = "secret"
    var named = settings
    named.login.user = "semel"
    named.login.password = "word"
    for settings in [settings, named] {
      try await RedisNode.run(settings) { node in
        let claim = try await node.store.completed()
        let sibling = node.sibling()
        #expect(try await sibling.store.find(claim.id).name == .completed)
        sibling.close()
      }
    }
    for (user, password, advice) in [
      (nil, nil, "Redis wants a login"), (nil, "wrong", "Redis knows no such user"),
      ("nobody", "secret", "Redis knows no such user"),
    ] as [(String?, String?, String)] {
      var wrong = RedisEndpointSettings.on(server, timeout: 1000)
      wrong.login.user = user
      wrong.login.password = password.map { Secret($0) }
      try await RedisNode.run(wrong) { node in
        let error = await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
        guard case .unavailable(let text) = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(text.contains(advice))
      }
    }
  }

  @Test func `a Redis that may evict or forget is warned of, loudly and once`() async throws {
    let server = try await RedisServer(arguments: [
      "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru",
    ])
    try await RedisNode.run(.on(server)) { node in
      #expect(try await node.store.granted(Samples.request()).attempt == 1)
      try server.command(["CLIENT", "KILL", "TYPE", "normal"])
      try await node.reconnected()
      let warnings = node.log.messages.filter { $0.contains("may lose records") }
      #expect(warnings.count == 2)
      #expect(warnings.contains { $0.contains("allkeys-lru") && $0.contains("set noeviction") })
      #expect(warnings.contains { $0.contains("set appendonly yes") })
    }
  }

  @Test func `an outcome that a claim returns is cached`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let claim = try await node.store.completed()
      let store = node.store.store
      let cached = CachedStore(store, cache: LocalCache(capacityBytes: 1 << 20))
      let before = store.counters.roundTrips
      #expect(cached.knownOutcome(of: claim.id, claim.fingerprint) == nil)
      let outcome = try await node.store.context.run { () async throws(StoreError) in
        try await cached.claim(Samples.again(claim))
      }
      #expect(outcome.taken == .completed)
      #expect(store.counters.roundTrips == before + 1)
      #expect(cached.knownOutcome(of: claim.id, claim.fingerprint)?.taken == .completed)
    }
  }

  @Test func `a durable Redis is not warned of, and another grants no claim with require_durable`()
    async throws
  {
    let durable = try await RedisServer(arguments: ["--maxmemory", "100mb"], appendOnly: true)
    for server in [durable, try await SharedRedis.server] {
      var settings = RedisEndpointSettings.on(server)
      settings.requireDurable = true
      try await RedisNode.run(settings) { node in
        guard server !== durable else {
          let claim = try await node.store.completed()
          #expect(try await node.store.find(claim.id).name == .completed)
          #expect(!node.log.messages.contains { $0.contains("may lose records") })
          return
        }
        let error = await #expect(throws: StoreError.self) { try await node.store.claim(Samples.request()) }
        guard case .refused(let text) = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(text.contains("require_durable"))
        #expect(try await node.store.find(Samples.id()) == .absent)
      }
    }
  }

  @Test func `a Redis that cannot be inspected is warned of`() async throws {
    let server = try await RedisServer(arguments: ["--rename-command", "INFO", ""])
    try await RedisNode.run(.on(server)) { node in
      _ = try await node.store.granted(Samples.request())
      #expect(node.log.messages.count { $0.contains("cannot be checked") } == 2)
    }
  }
}
