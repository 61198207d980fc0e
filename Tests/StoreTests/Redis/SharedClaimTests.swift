import Idempotency
import NIOCore
import Platform
import TestSupport
import Testing
import Wire

@testable import Store

/// Claims of one key that share a command, because they begin in one turn of the loop.
@Suite(.timeLimit(.minutes(1)))
struct SharedClaimTests {
  /// The replies to claims that begin in one turn of the store's loop, in their order.
  private func replies(_ node: RedisNode, to requests: [ClaimRequest]) async throws -> [ClaimReply] {
    let found = Watched<[Int: ClaimReply]>([:])
    let store = node.store.store
    node.store.context.loop.execute {
      for (index, request) in requests.enumerated() {
        store.startClaim(request) { reply in found.withValue { $0[index] = reply } }
      }
    }
    let all = try await found.until("all claims have replies") { $0.count == requests.count ? $0 : nil }
    return requests.indices.map { all[$0]! }
  }

  @Test(arguments: [8, 300_000])
  func `a recorded outcome is read once for all that ask at once`(_ length: Int) async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let body = String(repeating: "x", count: length)
      let claim = try await node.store.completed(
        with: Samples.completion(.whole(Samples.response(body: body))))
      let before = node.store.store.counters.roundTrips
      #expect(try await node.store.claim(Samples.again(claim)).taken == .completed)
      let alone = node.store.store.counters.roundTrips - before
      let replies = try await replies(node, to: (0..<20).map { _ in Samples.again(claim) })
      #expect(node.store.store.counters.roundTrips == before + 2 * alone)
      for reply in replies {
        guard case .taken(.completed(let record)) = try reply.get() else {
          throw Unexpected(what: "\(reply)")
        }
        #expect(record.outcome == .whole(Samples.response(body: body)))
      }
      // Nothing is left of them.
      #expect(try await node.store.claim(Samples.again(claim)).taken == .completed)
      #expect(node.store.store.counters.roundTrips == before + 3 * alone)
    }
  }

  @Test func `one of those that ask for a new record gets it`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let first = Samples.request()
      let requests = [first] + (0..<10).map { _ in first.changed(owner: .random()) }
      let outcomes = try await replies(node, to: requests).map { try $0.get() }
      guard case .granted(let claim) = outcomes[0] else { throw Unexpected(what: "\(outcomes[0])") }
      #expect(claim.owner == first.owner)
      #expect(outcomes.dropFirst().allSatisfy { $0.taken == .inFlight }, "\(outcomes)")
    }
  }

  @Test func `one that has shared a command in vain takes nothing over`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let claim = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(claim, because: nil) == .done)
      let follower = Samples.again(claim, takeOver: .afterSettle(0))
      let outcomes = try await replies(node, to: [Samples.again(claim), follower]).map { try $0.get() }
      #expect(outcomes.allSatisfy { $0.taken == .unknown }, "\(outcomes)")
      // The same claim alone is granted the record.
      _ = try await node.store.granted(follower)
    }
  }

  @Test func `another payload, and another key, have commands of their own`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let (claim, other) = (try await node.store.completed(), try await node.store.completed())
      let before = node.store.store.counters.roundTrips
      let requests = [
        Samples.again(claim), Samples.changed(claim), Samples.again(other), Samples.again(claim),
        Samples.again(other),
      ]
      let outcomes = try await replies(node, to: requests).map { try $0.get() }
      #expect(outcomes[1] == .mismatch)
      for index in [0, 2, 3, 4] { #expect(outcomes[index].taken == .completed, "\(index)") }
      #expect(node.store.store.counters.roundTrips == before + 3)
    }
  }

  @Test func `a claim that begins after the command has left asks again`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let claim = try await node.store.completed()
      let before = node.store.store.counters.roundTrips
      let found = Watched<[ClaimReply]>([])
      let (store, loop) = (node.store.store, node.store.context.loop)
      @Sendable func ask() {
        store.startClaim(Samples.again(claim)) { reply in found.withValue { $0.append(reply) } }
      }
      loop.execute {
        ask()
        // It runs after the write, which the first claim has put behind this turn's events.
        loop.execute { ask() }
      }
      _ = try await found.until("both have replies") { $0.count == 2 ? $0 : nil }
      #expect(node.store.store.counters.roundTrips == before + 2)
    }
  }

  @Test func `all end when no reply comes, and none is taken for executed but the one that was sent`()
    async throws
  {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.completed()
      server.freeze()
      defer { server.thaw() }
      let replies = try await replies(node, to: (0..<5).map { _ in Samples.again(claim) })
      guard case .failure(.fateUnknown) = replies[0] else { throw Unexpected(what: "\(replies[0])") }
      for reply in replies.dropFirst() {
        guard case .failure(.unavailable) = reply else { throw Unexpected(what: "\(reply)") }
      }
    }
  }

  @Test func `all are given the outcome although the connection is lost under them`() async throws {
    let server = try await RedisServer()
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server), relayed: relay.port) { node in
      let claim = try await node.store.completed()
      try await node.reconnected()
      relay.set(.cut(after: 3))
      let outcomes = try await replies(node, to: (0..<5).map { _ in Samples.again(claim) }).map {
        try $0.get()
      }
      #expect(outcomes.allSatisfy { $0.taken == .completed }, "\(outcomes)")
    }
    await relay.close()
  }
}
