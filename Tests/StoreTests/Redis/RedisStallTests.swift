import Glibc
import Idempotency
import Logging
import NIOCore
import NIOPosix
import Platform
import TestSupport
import Testing

@testable import Store

/// A loop that stood still finds its replies in the socket: that says nothing of Redis.
@Suite(.serialized)
struct RedisStallTests {
  private static let timeout: Milliseconds = 400
  /// Of its own, since its loops stand still: one test at a time, a loop for the subscriber and one for the store.
  private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
  /// Five times the time of a call: on a busy machine Redis needs a while to wake up.
  private static let stall: UInt32 = 2_000_000

  @Test func `a reply that arrived during a stall counts`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server, timeout: Self.timeout), group: Self.group) { node in
      try await node.store.eventually()
      let (store, loop) = (node.store.store, node.store.context.loop)
      let (outcomes, continuation) = AsyncStream<ClaimReply>.makeStream()
      server.freeze()
      loop.execute {
        store.startClaim(Samples.request()) { continuation.yield($0) }
        // Behind the writing, which the loop does at the end of its turn.
        loop.execute {
          loop.execute {
            server.thaw()
            usleep(Self.stall)
          }
        }
      }
      for await outcome in outcomes {
        guard case .success(.granted(let claim)) = outcome else { throw Unexpected(what: "\(outcome)") }
        #expect(claim.attempt == 1)
        break
      }
      #expect(store.counters.connections == 1)
      #expect(!node.log.messages.contains("no connection to Redis"))
    }
  }

  @Test func `a command that a stall kept from being written is written again`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server, timeout: Self.timeout), group: Self.group) { node in
      try await node.store.eventually()
      let store = node.store.store
      let (outcomes, continuation) = AsyncStream<ClaimReply>.makeStream()
      node.store.context.loop.execute {
        store.startClaim(Samples.request()) { continuation.yield($0) }
        usleep(Self.stall)
      }
      for await outcome in outcomes {
        guard case .success(.granted) = outcome else { throw Unexpected(what: "\(outcome)") }
        break
      }
      #expect(store.counters.connections == 1)
    }
  }

  @Test func `a pong that arrived during a stall counts`() async throws {
    let server = try await SharedRedis.server
    let context = EventLoopContext(loop: Self.group.next())
    let log = LogRecorder()
    let subscriber = RedisSubscriber(
      context: context, settings: .on(server), logger: .init(label: "redis") { _ in log })
    let (stalls, continuation) = AsyncStream<Void>.makeStream()
    // The first ping goes out after a second; the loop stands still over the second one's time.
    context.loop.execute {
      context.loop.scheduleTask(in: .milliseconds(1010)) {
        context.loop.execute {
          usleep(1_300_000)
          context.loop.scheduleTask(in: .milliseconds(300)) { continuation.yield() }
        }
      }
    }
    for await _ in stalls { break }
    #expect(subscriber.counters.connections == 1)
    #expect(!log.messages.contains("no connection to Redis"))
    subscriber.close()
  }
}
