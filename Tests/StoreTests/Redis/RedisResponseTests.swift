import Idempotency
import NIOCore
import Platform
import Synchronization
import TestSupport
import Testing

@testable import Store

/// Large responses on their way to and from Redis, and what they do to other commands.
@Suite(.timeLimit(.minutes(1)))
struct RedisResponseTests {
  private static let size = 1 << 20

  private static func large(_ size: Int = size) -> Completion {
    Samples.completion(.whole(Samples.response(body: String(repeating: "x", count: size))))
  }

  /// The bytes of all replies that the server has given.
  private func repliedBytes(_ server: RedisServer) throws -> Int {
    let text = try server.command(["INFO", "stats"]) ?? ""
    let line = text.split(separator: "\r\n").first { $0.hasPrefix("total_net_output_bytes:") }
    return try #require(line.flatMap { Int($0.drop { $0 != ":" }.dropFirst()) })
  }

  @Test func `a state is read without its response, however often`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.completed(with: Self.large())
      let before = try repliedBytes(server)
      for _ in 0..<50 {
        #expect(try await node.store.find(claim.id, reading: .state).name == .completed)
      }
      #expect(try repliedBytes(server) - before < 100_000)
    }
  }

  @Test func `those who want one response at the same time share its reading`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.completed(with: Self.large())
      let before = try repliedBytes(server)
      try await withThrowingTaskGroup(of: Int?.self) { group in
        for _ in 0..<200 {
          group.addTask { try await node.store.find(claim.id).completedRecord?.outcome.size }
        }
        for try await size in group { #expect(size ?? 0 > Self.size) }
      }
      // Less than a quarter: how many arrive together is the machine's business.
      #expect(try repliedBytes(server) - before < 50 * Self.size)
    }
  }

  /// A delivery that tells whether its client still waits, as long as it is asked on its loop.
  private final class Reader: ResponseReader {
    let turn: Int
    let isConnected: Bool

    init(turn: Int = 1, isConnected: Bool = true) { (self.turn, self.isConnected) = (turn, isConnected) }
  }

  @Test func `no response is read for a client that is gone`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.completed(with: Self.large())
      let before = try repliedBytes(server)
      for _ in 0..<20 {
        let error = await #expect(throws: StoreError.self) {
          try await node.store.find(
            claim.id, reading: .response(opening: nil, for: Reader(isConnected: false)))
        }
        guard case .busy = error else { throw Unexpected(what: "\(error as Any)") }
      }
      #expect(try repliedBytes(server) - before < Self.size)
      let found = try await node.store.find(claim.id, reading: .response(opening: nil, for: Reader()))
      #expect(found.completedRecord?.outcome.size ?? 0 > Self.size)
    }
  }

  @Test func `an outcome is kept without a response that does not reach Redis, and nobody else notices`()
    async throws
  {
    let server = try await RedisServer()
    let relay = try await RedisRelay(to: server.port)
    // As long as it takes others to end six requests on a busy machine.
    var settings = RedisEndpointSettings.on(server, timeout: 5000)
    settings.maxSilence = 8000
    try await RedisNode.run(settings, relayed: relay.port) { node in
      try await node.reconnected()
      let claim = try await node.store.granted(Samples.request())
      relay.set(.stall(after: 256 << 10))
      async let completion = node.store.complete(claim, with: Self.large(8 << 20))
      let isOver = Watched(false)
      let others = Task {
        var count = 0
        repeat {
          _ = try await node.store.completed()
          count += 1
          // All of them together are shorter than what their connection passes.
          try await Task.sleep(for: .milliseconds(100))
        } while !isOver.value
        return count
      }
      let reply = try await completion
      isOver.withValue { $0 = true }
      #expect(reply.outcome == .done)
      #expect(reply.record?.outcome == .statusOnly(status: 201, location: nil))
      #expect(try await others.value > 5)
      #expect(node.store.store.counters.reconnections == 0)
      let found = try await node.store.find(claim.id).completedRecord?.outcome
      #expect(found == .statusOnly(status: 201, location: nil))
    }
    await relay.close()
  }

  @Test func `a Redis that answers a fresh connection is not down`() async throws {
    let server = try await RedisServer()
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server, timeout: 4000), relayed: relay.port) { node in
      try await node.reconnected()
      #expect(await !node.store.isDown(for: Samples.id()))
      relay.silence()
      await #expect(throws: StoreError.self) { try await node.store.claim(Samples.request()) }
      #expect(await !node.store.isDown(for: Samples.id()))
      try await node.reconnected()
      relay.set(.vanish)
      await #expect(throws: StoreError.self) { try await node.store.claim(Samples.request()) }
      // Nothing that comes over a fresh connection either.
      #expect(await node.store.isDown(for: Samples.id()))
      relay.set(.pass)
      relay.cutAll()
      try await node.reconnected()
    }
    await relay.close()
  }

  @Test(arguments: [false, true])
  func `a Redis that is frozen or gone is down, and one that is back is not`(isKilled: Bool) async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server, timeout: 1000)) { node in
      try await node.reconnected()
      if isKilled { server.kill() } else { server.freeze() }
      for _ in 0..<2 {
        await #expect(throws: StoreError.self) { try await node.store.claim(Samples.request()) }
        #expect(await node.store.isDown(for: Samples.id()))
      }
      if isKilled { try await server.start() } else { server.thaw() }
      try await node.reconnected()
      #expect(await !node.store.isDown(for: Samples.id()))
    }
  }
}
