import Idempotency
import Logging
import Platform
import TestSupport
import Testing

@testable import Store

/// The index of open records while Redis takes nothing, and with keys and entries that Semel has not made.
@Suite(.timeLimit(.minutes(2)))
struct RedisOpenIndexFailureTests {
  /// The ways in which a Redis takes no changes for a time.
  enum Trouble: CaseIterable {
    case full, replica, dead

    /// Begins. Returns what ends it.
    func begin(at server: RedisServer) throws -> () async throws -> Void {
      switch self {
      case .full:
        try server.command(["CONFIG", "SET", "maxmemory", "1"])
        return { try server.command(["CONFIG", "SET", "maxmemory", "0"]) }
      case .replica:
        let master = try DeadPort.refusing()
        try server.command(["REPLICAOF", "127.0.0.1", "\(master.port)"])
        return {
          try server.command(["REPLICAOF", "NO", "ONE"])
          withExtendedLifetime(master) {}
        }
      case .dead:
        server.kill()
        return { try await server.start() }
      }
    }
  }

  /// Fills the server with keys of others, from which on the index is used.
  private static func fill(_ server: RedisServer) throws {
    let script = "for i = 1, ARGV[1] do redis.call('SET', 'x' .. i, '') end"
    try server.command(["EVAL", script, "0", "\(RedisOpenIndex.maxSmallSize + 1)"])
  }

  @Test(arguments: Trouble.allCases)
  func `what Redis does not take is in the index once it does`(_ trouble: Trouble) async throws {
    let server = try await RedisServer(appendOnly: true)
    try await RedisNode.run(.on(server, timeout: 1000)) { node in
      let claim = try await node.store.granted(Samples.request())
      let end = try trouble.begin(at: server)
      await #expect(throws: StoreError.self) { try await node.store.markUnknown(claim) }
      try await until("the index takes nothing") {
        node.log.messages(at: .debug).contains("the index of open records was not written")
      }
      try await end()
      try await node.reconnected()
      // The mark was not taken, either.
      try await node.store.untilOpen { $0[claim.id]?.standing.name == .inFlight }
      try await node.store.untilCount(OpenCount(inFlight: 1))
      #expect(try await node.store.markUnknown(claim, because: .timeOut) == .done)
      let next = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(next) == .done)
      #expect(Set(try await node.store.indexed().keys) == [claim.id, next.id])
      try await node.store.untilCount(OpenCount(unknown: 2))
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      #expect(Set(try await node.store.indexed().keys) == [next.id])
    }
  }

  @Test func `a Redis that comes back empty has an index of what still runs`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let lost = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(lost) == .done)
      let running = try await node.store.granted(Samples.request())
      try await node.store.untilOpen { Set($0.keys) == [lost.id, running.id] }
      try await server.restart()
      try await node.reconnected()
      #expect(try await node.store.indexed().isEmpty)
      #expect(try await node.store.renew(running) == .done)
      #expect(Set(try await node.store.indexed().keys) == [running.id])
      try await node.store.untilCount(OpenCount(inFlight: 1))
    }
  }

  @Test func `an index that Redis forbids is used again once it is allowed, and lacks nothing`() async throws
  {
    let server = try await RedisServer()
    try Self.fill(server)
    try server.command(["ACL", "SETUSER", "semel", "on", ">secret", "~*", "&*", "+@all", "-zadd"])
    var settings = RedisEndpointSettings.on(server)
    settings.login.user = "semel"
    settings.login.password = Secret("secret")
    settings.indexPause = 200
    try await RedisNode.run(settings) { node in
      let index = try #require(node.store.openIndex)
      #expect(await index.isNeeded())
      let claim = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(claim) == .done)
      try await until("the index is given up") { await !index.isNeeded() }
      await #expect(throws: StoreError.self) { try await index.repair(after: nil, isUrgent: true) }
      #expect(Set(try await node.store.open().keys) == [claim.id])
      try server.command(["ACL", "SETUSER", "semel", "+zadd"])
      try await until("the index is used") { await index.isNeeded() }
      #expect(Set(try await node.store.indexed().keys) == [claim.id])
      #expect(node.log.messages(at: .warning).count { $0.contains("forbids the commands of the index") } == 1)
      #expect(node.log.messages(at: .notice).count { $0.contains("allows the commands of the index") } == 1)
    }
  }

  @Test func `a key of another type is no index, until it is gone`() async throws {
    let server = try await RedisServer()
    try Self.fill(server)
    var settings = RedisEndpointSettings.on(server)
    settings.indexPause = 200
    try await RedisNode.run(settings) { node in
      let index = try #require(node.store.openIndex)
      let key = node.store.store.keys.open
      try server.command(["SET", key, "something else"])
      await #expect(throws: StoreError.self) { try await index.count() }
      #expect(await !index.isNeeded())
      let claim = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(claim) == .done)
      #expect(Set(try await node.store.open().keys) == [claim.id])
      try server.command(["DEL", key])
      try await until("the index is used") { await index.isNeeded() }
      #expect(Set(try await node.store.indexed().keys) == [claim.id])
    }
  }

  @Test func `forged entries hide no record, and show none that is not open`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let key = node.store.store.keys.open
      var ids: Set<RecordID> = []
      for _ in 0..<150 {
        let claim = try await node.store.granted(Samples.request())
        #expect(try await node.store.markUnknown(claim) == .done)
        ids.insert(claim.id)
      }
      try await node.store.untilCount(OpenCount(unknown: ids.count))
      let ended = try await node.store.completed()
      var forged: [(score: String, name: String)] = [
        ("1000", ended.id.text), ("2000", Samples.id().text), ("inf", Samples.id().text),
        ("-inf", "no record"), ("9e18", "\(key):other"), ("1000.5", ""),
      ]
      // More than a part has, before every record.
      forged += (0..<120).map { (score: "\($0)", name: "stranger \($0)") }
      // Times and states that these records do not have.
      for (id, score) in zip(ids, ["inf", "-inf", "-1", "0", "1.5", "9e18"]) {
        forged.append((score, id.text))
      }
      for entry in forged { try server.command(["ZADD", key, entry.score, entry.name]) }
      #expect(Set(try await node.store.indexed().keys) == ids)
      #expect(try await node.store.openCount() == OpenCount(unknown: ids.count))
      #expect(try server.command(["ZCARD", key]) == ":\(ids.count)")
    }
  }
}

/// Unreadable records that deliveries meet, in the index of open records.
@Suite(.timeLimit(.minutes(2)))
struct RedisUnreadableIndexTests {
  private static func untilUnreadable(_ index: any OpenRecordIndex, _ ids: [RecordID]) async throws {
    try await until("these are listed as unreadable") { try await index.open(after: nil).unreadable == ids }
  }

  @Test func `a record that refuses a delivery as unreadable is listed until it is forgotten`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let index = try #require(node.store.openIndex)
      let claim = try await node.store.completed()
      let key = node.store.store.keys.channel(claim.id)
      try await SharedRedis.server.command(["SET", key, "2 of a later version"])
      await #expect(throws: StoreError.self) { try await node.store.claim(Samples.again(claim)) }
      try await Self.untilUnreadable(index, [claim.id])
      #expect(try await index.count() == OpenCount(unreadable: 1))
      #expect(try await node.store.forget(claim.id, fence: 0))
      #expect(try await index.count() == OpenCount())
    }
  }

  @Test func `a record of a lost secret that refuses a delivery is listed until the secret is back`()
    async throws
  {
    let settings = RedisEndpointSettings.on(try await SharedRedis.server)
    let secrets = (Secret(String(repeating: "a", count: 32)), Secret(String(repeating: "b", count: 32)))
    let first = RedisNode(settings, codec: OutcomeCodec(secrets: [secrets.0]))
    let second = RedisNode(settings, codec: OutcomeCodec(secrets: [secrets.1]))
    defer {
      first.close()
      second.close()
    }
    let claim = try await first.store.completed()
    await #expect(throws: StoreError.unreadable(OutcomeCodec.lostSecret)) {
      try await second.store.claim(Samples.again(claim))
    }
    try await Self.untilUnreadable(try #require(second.store.openIndex), [claim.id])
    let index = try #require(first.store.openIndex)
    #expect(try await index.open(after: nil).unreadable.isEmpty)
    #expect(try await index.count() == OpenCount())
  }
}
