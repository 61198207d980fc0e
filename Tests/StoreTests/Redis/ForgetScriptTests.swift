import Idempotency
import Platform
import TestSupport
import Testing

@testable import Store

/// Copies of one `forget`, of which Redis executes several where a reply was lost.
@Suite(.timeLimit(.minutes(1)))
struct ForgetScriptTests {
  private static let fence: Int64 = 60_000

  /// Executes one copy, and returns the word of its reply.
  private static func forget(
    _ id: RecordID, _ token: String, since begin: Int64, _ node: RedisNode, _ server: RedisServer
  ) throws -> String {
    let reply = try server.command([
      "EVAL", RedisScript.forget.source, "1", node.key(of: id), token, "\(fence)", "channel", id.text,
      "\(WallClock.milliseconds() + 10_000)", "\(begin)",
    ])
    return reply.map { $0.contains("erased") ? "erased" : $0.contains("again") ? "again" : $0 } ?? ""
  }

  @Test func `a copy does not forget a record that began behind the fence of another one`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let tokens = ["a", "b"].map { String(repeating: $0, count: 32) }
      let id = try await node.store.completed().id
      let begin = WallClock.milliseconds()
      #expect(try Self.forget(id, tokens[0], since: begin, node, server) == "erased")
      let claim = try await node.store.granted(Samples.request(id))
      #expect(try Self.forget(id, tokens[0], since: begin, node, server) == "erased")
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      // A later call forgets it.
      let later = WallClock.milliseconds() + 1
      try await until("the next millisecond") { WallClock.milliseconds() > later }
      #expect(try Self.forget(id, tokens[1], since: later, node, server) == "erased")
      #expect(try await node.store.find(id).name != .completed)
    }
  }
}
