import Idempotency
import Platform
import TestSupport
import Testing

@testable import Store

/// The count of open records, which nodes on one Redis share, and the pace of the walk that makes it.
@Suite(.timeLimit(.minutes(1)))
struct OpenRecordBoardTests {
  @Test func `one node has the turn to count until it expires`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let sibling = node.sibling()
      defer { sibling.close() }
      let board = node.store.store
      let other = sibling.store.store
      let (own, others) = (OwnerToken.random(), OwnerToken.random())
      #expect(try await board.takeTurn(own, for: .seconds(60)))
      #expect(try await !other.takeTurn(others, for: .seconds(60)))
      // Its owner keeps it for as long as the count takes.
      let extended = ContinuousClock.now
      #expect(try await board.takeTurn(own, for: 300))
      while try await !other.takeTurn(others, for: .seconds(60)) {
        try await Task.sleep(for: .milliseconds(10))
      }
      #expect(ContinuousClock.now - extended >= .milliseconds(290))
      #expect(try await !board.takeTurn(own, for: .seconds(60)))
    }
  }

  @Test func `a count is every node's until it expires`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let sibling = node.sibling()
      defer { sibling.close() }
      let board = node.store.store
      let other = sibling.store.store
      #expect(try await other.lastCount() == nil)
      try await board.post("1 2 3", for: .seconds(60))
      #expect(try await other.lastCount() == "1 2 3")
      try await board.post("4 5 6", for: 100)
      while try await other.lastCount() != nil { try await Task.sleep(for: .milliseconds(10)) }
    }
  }

  @Test func `the wish for a repair is taken once, by whichever node`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let sibling = node.sibling()
      defer { sibling.close() }
      let board = node.store.store
      let other = sibling.store.store
      #expect(try await !other.takeRepairWish())
      try await board.wishRepair()
      try await other.wishRepair()
      #expect(try await other.takeRepairWish())
      #expect(try await !board.takeRepairWish())
    }
  }

  @Test func `a step makes up for what the one before has waited too long or too short`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let nodes = node.store.store.nodes
      /// The pause after a step of a millisecond, in milliseconds.
      func pause(carrying milliseconds: Int64) async -> ClosedRange<Int64> {
        await node.store.context.run {
          let before = BootInstant.now
          nodes.carriedPause = milliseconds * 1_000_000
          nodes.walkStepped(nanoseconds: 1_000_000)
          let low = (nodes.nextStepAt.nanoseconds - BootInstant.now.nanoseconds) / 1_000_000
          return min(low, 0)...(nodes.nextStepAt.nanoseconds - before.nanoseconds) / 1_000_000
        }
      }
      #expect(await pause(carrying: 0).upperBound >= 10)
      #expect(await pause(carrying: 5).upperBound >= 15)
      // A timer was late by seven.
      #expect(await pause(carrying: -7).lowerBound <= 3)
    }
  }

  @Test func `a walk pauses for ten times as long as its last step took, and at most 200 ms`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let nodes = node.store.store.nodes
      func pause(after milliseconds: Int64) async -> Duration {
        await node.store.context.run {
          let began = ContinuousClock.now
          nodes.walkStepped(nanoseconds: milliseconds * 1_000_000)
          await nodes.paceWalk()
          nodes.walkStepped(nanoseconds: 0)
          return ContinuousClock.now - began
        }
      }
      #expect(await pause(after: 5) >= .milliseconds(50))
      let longest = await pause(after: 60_000)
      #expect(longest >= .milliseconds(200) && longest < .seconds(10))
    }
  }

  @Test func `walks of one node take turns`() async throws {
    try await RedisNode.run(.on(try await SharedRedis.server)) { node in
      let nodes = node.store.store.nodes
      let began = ContinuousClock.now
      let steps = await withTaskGroup(of: ContinuousClock.Instant.self) { group in
        for _ in 0..<3 {
          group.addTask {
            await node.store.context.run {
              await nodes.paceWalk()
              return ContinuousClock.now
            }
          }
        }
        return await group.reduce(into: []) { $0.append($1) }.sorted()
      }
      // None has said yet how long its step took.
      #expect(steps[1] - began >= .milliseconds(200) && steps[2] - began >= .milliseconds(400))
    }
  }
}
