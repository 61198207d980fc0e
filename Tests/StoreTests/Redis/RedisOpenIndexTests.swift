import Idempotency
import Logging
import Platform
import TestSupport
import Testing

@testable import Store

/// The index of open records in Redis: what it lacks, what it has too much, and the walk that repairs it.
@Suite(.timeLimit(.minutes(2)))
struct RedisOpenIndexTests {
  /// A topology that the tests of the index are run on.
  struct Topology: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let settings: @Sendable () async throws -> RedisEndpointSettings

    static let all = [
      Topology(testDescription: "one server") { .on(try await SharedRedis.server) },
      Topology(testDescription: "a cluster") { .on(try await SharedCluster.cluster.ports) },
    ]
  }

  /// Runs a test on a node and its index.
  private static func run(
    _ topology: Topology, _ test: (RedisNode, any OpenRecordIndex) async throws -> Void
  ) async throws {
    try await RedisNode.run(try await topology.settings()) { node in
      try await test(node, try #require(node.store.openIndex))
    }
  }

  /// Walks through the whole store. Returns the number of steps.
  @discardableResult
  private static func repair(_ index: any OpenRecordIndex, isUrgent: Bool = true) async throws -> Int {
    var (cursor, steps): (String?, Int) = (nil, 0)
    repeat {
      cursor = try await index.repair(after: cursor, isUrgent: isUrgent)
      steps += 1
    } while cursor != nil
    return steps
  }

  private static func reply(_ node: RedisNode, _ words: [String]) async throws -> RedisValue {
    try await node.store.context.run { () async throws(StoreError) in
      try await node.store.store.nodes.reply(to: words, .key(words[1]))
    }
  }

  /// Removes the index, as if an earlier version had written the records.
  private static func dropIndex(of node: RedisNode) async throws {
    let keys = node.store.store.keys
    for key in [keys.open, keys.openKeys] { _ = try await reply(node, ["DEL", key]) }
  }

  @Test(arguments: Topology.all)
  func `a walk enters the records that the index lacks`(_ topology: Topology) async throws {
    try await Self.run(topology) { node, index in
      let origin = Samples.attribution()
      var unknown: Set<RecordID> = []
      for _ in 0..<120 {
        let claim = try await node.store.granted(Samples.request(attribution: origin))
        #expect(try await node.store.markUnknown(claim, because: .timeOut) == .done)
        unknown.insert(claim.id)
      }
      let lapsed = try await node.store.lapsed(Samples.request(attribution: origin))
      _ = try await node.store.completed(Samples.request(attribution: origin))
      _ = try await index.count()
      try await Self.dropIndex(of: node)
      try await Self.repair(index)
      #expect(Set(try await node.store.indexed().keys) == unknown.union([lapsed.id]))
      #expect(try await index.count() == OpenCount(unknown: 121))
      let filter = RecordFilter(keyDigests: [try #require(origin.keyDigest)])
      #expect(Set(try await index.open(matching: filter)) == unknown.union([lapsed.id]))
    }
  }

  @Test(arguments: Topology.all)
  func `an index without records is emptied as it is read`(_ topology: Topology) async throws {
    try await Self.run(topology) { node, index in
      let (entries, kept) = (
        (0..<230).map { _ in
          OpenEntry(id: Samples.id(), lapse: StoreInstant(milliseconds: 1000), keyDigest: "00000001")
        }, try await node.store.granted(Samples.request())
      )
      #expect(try await node.store.markUnknown(kept) == .done)
      try await node.store.context.run { () async throws(StoreError) in
        try await node.store.store.nodes.keeper.enter(entries)
      }
      #expect(try await index.count() == OpenCount(unknown: 231))
      #expect(Set(try await node.store.indexed().keys) == [kept.id])
      #expect(try await index.count() == OpenCount(unknown: 1))
      try await node.store.context.run { () async throws(StoreError) in
        try await node.store.store.nodes.keeper.enter(entries)
      }
      #expect(try await index.open(matching: RecordFilter(keyDigests: ["00000001"])).isEmpty)
      #expect(try await index.count() == OpenCount(unknown: 1))
    }
  }

  @Test(arguments: Topology.all)
  func `a renewal enters a record that the index has lost`(_ topology: Topology) async throws {
    try await Self.run(topology) { node, index in
      let claim = try await node.store.granted(Samples.request(attribution: Samples.attribution()))
      try await node.store.untilOpen { $0[claim.id] != nil }
      try await Self.dropIndex(of: node)
      #expect(try await node.store.indexed().isEmpty)
      #expect(try await node.store.renew(claim) == .done)
      #expect(try await node.store.indexed()[claim.id]?.standing.name == .inFlight)
      #expect(try await index.count() == OpenCount(inFlight: 1))
    }
  }

  @Test func `after a FLUSHALL what becomes unknown is listed`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let index = try #require(node.store.openIndex)
      let first = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(first) == .done)
      let running = try await node.store.granted(Samples.request())
      try await node.store.untilOpen { Set($0.keys) == [first.id, running.id] }
      try server.command(["FLUSHALL"])
      #expect(try await node.store.indexed().isEmpty)
      #expect(try await index.count() == OpenCount())
      // A renewal makes the record of a live claim anew, and its entry.
      #expect(try await node.store.renew(running) == .done)
      #expect(Set(try await node.store.indexed().keys) == [running.id])
      let second = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(second) == .done)
      #expect(Set(try await node.store.indexed().keys) == [running.id, second.id])
      #expect(try await index.count() == OpenCount(inFlight: 1, unknown: 1))
    }
  }

  @Test func `what cannot be read is entered by a walk, first in the list and counted by itself`()
    async throws
  {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let index = try #require(node.store.openIndex)
      let unknown = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(unknown) == .done)
      let id = Samples.id()
      try server.command(["SET", node.store.store.keys.channel(id), "2 of a later version"])
      #expect(try await index.open(after: nil).unreadable.isEmpty)
      try await Self.repair(index)
      for _ in 0..<2 {
        let part = try await index.open(after: nil)
        #expect(part.unreadable == [id] && part.records.map(\.id) == [unknown.id])
        #expect(try await index.count() == OpenCount(unknown: 1, unreadable: 1))
      }
      #expect(try await node.store.forget(id, fence: 0))
      #expect(try await index.count() == OpenCount(unknown: 1))
    }
  }

  @Test func `the index is needed in a large store alone`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let index = try #require(node.store.openIndex)
      _ = try await node.store.granted(Samples.request())
      #expect(await !index.isNeeded())
      let fill = "for i = 1, ARGV[1] do redis.call('SET', 'x' .. i, '') end"
      try server.command(["EVAL", fill, "0", "\(RedisOpenIndex.maxSmallSize)"])
      #expect(await index.isNeeded())
    }
  }

  @Test func `a quick first run writes nothing to the index`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      for _ in 0..<20 {
        _ = try await node.store.completed(Samples.request(attribution: Samples.attribution()))
      }
      let slow = try await node.store.granted(Samples.request())
      try await node.store.untilOpen { $0[slow.id] != nil }
      let commands = try #require(try server.command(["INFO", "commandstats"]))
      // The one that is slow, and no other.
      #expect(commands.contains("cmdstat_zadd:calls=1,"), "\(commands)")
      #expect(try await node.store.complete(slow, with: Samples.completion()).outcome == .done)
      #expect(try await node.store.openCount() == OpenCount())
    }
  }

  @Test func `a user who may not use the index keeps its records, and has no index`() async throws {
    let server = try await RedisServer()
    try server.command([
      "ACL", "SETUSER", "semel", "on", ">secret", "~*", "&*", "+@all", "-zadd", "-zrangebyscore",
    ])
    var settings = RedisEndpointSettings.on(server)
    settings.login.user = "semel"
    settings.login.password = Secret("secret")
    try await RedisNode.run(settings) { node in
      let index = try #require(node.store.openIndex)
      let claim = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(claim) == .done)
      try await until("the index is given up") { node.subscriber.indexPause.use(at: .now) == .none }
      #expect(await !index.isNeeded())
      await #expect(throws: StoreError.self) { try await index.repair(after: nil, isUrgent: true) }
      #expect(try await node.store.open()[claim.id]?.standing.name == .unknown)
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      #expect(node.log.messages(at: .warning).count { $0.contains("forbids the commands of the index") } == 1)
    }
  }

  @Test func `an index that may not be read is given up at the first reading`() async throws {
    let server = try await RedisServer()
    try server.command(["ACL", "SETUSER", "semel", "on", ">secret", "~*", "&*", "+@all", "-zrangebyscore"])
    var settings = RedisEndpointSettings.on(server)
    settings.login.user = "semel"
    settings.login.password = Secret("secret")
    try await RedisNode.run(settings) { node in
      let index = try #require(node.store.openIndex)
      #expect(try await index.count() == OpenCount())
      await #expect(throws: StoreError.self) { try await index.open(after: nil) }
      #expect(node.subscriber.indexPause.use(at: .now) == .none)
      #expect(await !index.isNeeded())
    }
  }
}
