import Idempotency
import NIOCore
import Platform
import TestSupport
import Testing

@testable import Store

/// The ends of waits for Redis' replies.
@Suite(.timeLimit(.minutes(1)))
struct RedisDeadlineTests {
  /// The inspection does so: once a reply to its questions is missing, it tries claims at every other node, and at this
  /// one as well. A debug build stops at the old indices, and a release build would end the waits of others once the
  /// buffer had grown meanwhile.
  @Test func `commands that are written when others' time is over end no other waits`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server, timeout: 400)) { node in
      try await node.reconnected()
      let (nodes, ended) = (node.store.store.nodes, Watched<[Int]>([]))
      server.freeze()
      // More than the buffer takes at first, together with those that follow.
      node.store.context.loop.execute {
        for number in 0..<50 {
          nodes.single?.query(["PING"]) { reply in
            #expect(reply == nil)
            ended.withValue { $0.append(number) }
            for _ in 0..<5 { nodes.single?.query(["PING"]) { _ in ended.withValue { $0.append(100) } } }
          }
        }
      }
      try await ended.until("the ends of all waits") { $0.count == 300 ? true : nil }
      #expect(ended.value.filter { $0 < 100 } == Array(0..<50))
      server.thaw()
      try await node.reconnected()
    }
  }
}
