import Idempotency
import NIOCore
import Platform
import TestSupport
import Testing

@testable import Store

/// Claims without a script, and completions without Redis' time.
@Suite(.timeLimit(.minutes(1)))
struct PlainClaimTests {
  /// Makes the estimate of the server's clock good enough.
  private func warm(_ node: RedisNode) async throws {
    try await node.reconnected()
    try await node.store.ping()
  }

  @Test func `a new record and a replay take no script`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server).loaded) { node in
      try await warm(node)
      let (scripts, sets) = (try server.scriptCount, try server.calls(of: "set"))
      let request = Samples.request(attribution: Samples.attribution())
      let claim = try await node.store.granted(request)
      #expect(try server.scriptCount == scripts)
      #expect(try server.calls(of: "set") == sets + 1)
      #expect(claim.attempt == 1 && claim.onlyRejectedSoFar && !claim.followsUnknown)
      let view = try #require(try await node.store.inspect(claim.id))
      #expect(view.firstSeen == claim.firstSeen && view.attribution == request.attribution)
      guard case .inFlight(let left, attempt: 1) = view.standing else {
        throw Unexpected(what: "\(view.standing)")
      }
      // The estimate is ahead of the server's clock by little.
      #expect(left > request.lease - 5000 && left <= request.lease + 110)
      let completion = Samples.completion()
      #expect(try await node.store.complete(claim, with: completion).outcome == .done)
      try await node.store.ping()
      let before = try server.scriptCount
      guard case .taken(.completed(let record)) = try await node.store.claim(Samples.again(claim)) else {
        throw Unexpected(what: "no replay")
      }
      #expect(record.outcome == completion.outcome && record.attempt == 1)
      #expect(try server.scriptCount == before)
    }
  }

  @Test func `the script decides about every other record`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server).loaded) { node in
      try await warm(node)
      func decided(_ request: ClaimRequest) async throws -> ClaimOutcome {
        try await node.store.ping()
        let (scripts, sets) = (try server.scriptCount, try server.calls(of: "set"))
        let outcome = try await node.store.claim(request)
        #expect(try server.scriptCount == scripts + 1)
        #expect(try server.calls(of: "set") > sets)
        return outcome
      }
      let claim = try await node.store.granted(Samples.request())
      #expect(try await decided(Samples.changed(claim)) == .mismatch)
      guard case .taken(.inFlight) = try await decided(Samples.again(claim)) else {
        throw Unexpected(what: "not in flight")
      }
      #expect(try await node.store.release(claim, .remembered) == .done)
      guard case .granted(let second) = try await decided(Samples.again(claim)) else {
        throw Unexpected(what: "not granted")
      }
      #expect(second.attempt == 2)
      #expect(try await node.store.complete(second, with: Samples.completion()).outcome == .done)
      #expect(try await decided(Samples.changed(claim)) == .mismatch)
      #expect(try await node.store.forget(claim.id, fence: .seconds(60)))
      guard case .granted(let third) = try await decided(Samples.again(claim)) else {
        throw Unexpected(what: "not granted")
      }
      #expect(third.fence != nil)
    }
  }

  @Test func `commands cost less once there are enough of them under way`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server).patient) { node in
      try await warm(node)
      let (scripts, times) = (try server.scriptCount, try server.calls(of: "time"))
      let granted = Watched<[Claim]>([])
      node.store.context.loop.execute {
        for _ in 0..<10 {
          node.store.store.startClaim(Samples.request()) { reply in
            if case .success(.granted(let claim)) = reply { granted.withValue { $0.append(claim) } }
          }
        }
      }
      let claims = try await granted.until("all grants") { $0.count == 10 ? $0 : nil }
      #expect(try server.scriptCount == scripts + 4)
      #expect(try server.calls(of: "time") == times + 4)
      let before = try server.calls(of: "time")
      let store = node.store
      let done = try await withThrowingTaskGroup(of: CompletionReply.self) { group in
        for claim in claims { group.addTask { try await store.complete(claim, with: Samples.completion()) } }
        return try await group.reduce(into: [CompletionReply]()) { $0.append($1) }
      }
      #expect(done.allSatisfy { $0.outcome == .done && $0.record != nil })
      #expect(try server.calls(of: "time") <= before + 9)
    }
  }

  @Test func `a claim that the server reads after it was repeated and given back claims nothing`()
    async throws
  {
    let server = try await RedisServer()
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server, timeout: 2000).loaded, relayed: relay.port) { node in
      try await warm(node)
      let sets = try server.calls(of: "set")
      relay.set(.haunt)
      let claim = try await node.store.granted(Samples.request())
      #expect(relay.isHaunted)
      // The first copy is on its way yet, and has no deadline.
      #expect(try await node.store.release(claim, .deleted) == .done)
      #expect(try await node.store.find(claim.id) == .absent)
      relay.release()
      // What the server gets after that over another connection is executed later.
      try await until("the relay has no connection that the server has closed") { relay.endedCount > 0 }
      #expect(try await node.store.find(claim.id) == .absent)
      #expect(try server.calls(of: "set") == sets + 1)
    }
    await relay.close()
  }

  @Test func `without the right to end its connections every claim takes the script`() async throws {
    let server = try await RedisServer()
    try server.command(["ACL", "SETUSER", "semel", "on", ">word", "~*", "&*", "+@all", "-client|kill"])
    var settings = RedisEndpointSettings.on(server).loaded
    settings.login.user = "semel"
    settings.login.password = "word"
    try await RedisNode.run(settings) { node in
      try await warm(node)
      let scripts = try server.scriptCount
      _ = try await node.store.granted(Samples.request())
      #expect(try server.scriptCount == scripts + 1)
    }
  }

  @Test func `a full Redis still replays`() async throws {
    let server = try await RedisServer(arguments: ["--maxmemory-policy", "noeviction"])
    try await RedisNode.run(.on(server).loaded) { node in
      try await warm(node)
      let claim = try await node.store.granted(Samples.request())
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      try server.command(["CONFIG", "SET", "maxmemory", "1"])
      try await node.store.ping()
      guard case .taken(.completed) = try await node.store.claim(Samples.again(claim)) else {
        throw Unexpected(what: "no replay")
      }
      await #expect(throws: StoreError.self) { try await node.store.claim(Samples.request()) }
      try server.command(["CONFIG", "SET", "maxmemory", "0"])
    }
  }

  @Test func `a server that knows no such command or forbids it has no session`() {
    let server = RedisValue.text("# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n")
    let old = RedisValue.text("# Server\r\nredis_version:6.2.6\r\nrun_id:abc\r\n")
    let refusal = RedisValue.error("NOPERM this user has no permissions to run the 'client|kill' command")
    #expect(RedisSession(server: server, client: .integer(7), trial: .integer(0))?.client == 7)
    #expect(RedisSession(server: old, client: .integer(7), trial: .integer(0)) == nil)
    #expect(RedisSession(server: refusal, client: .integer(7), trial: .integer(0)) == nil)
    #expect(RedisSession(server: server, client: refusal, trial: .integer(0)) == nil)
    #expect(RedisSession(server: server, client: .integer(7), trial: refusal) == nil)
  }

  @Test func `the later estimate of the clock is never behind it, and not given when it is poor`() throws {
    let start = BootInstant(nanoseconds: 50_000_000_000)
    func time(_ at: BootInstant) -> StoreInstant {
      StoreInstant(milliseconds: at.nanoseconds / 1_000_000 + 60_000)
    }
    var clock = RedisClock()
    #expect(clock.latest(at: start, maxAge: 1000) == nil)
    // A reply that took half a second says little.
    _ = clock.update(to: time(start - 250), sentAt: start - 500, at: start)
    #expect(clock.latest(at: start, maxAge: 1000) == nil)
    _ = clock.update(to: time(start + 9), sentAt: start + 8, at: start + 10)
    let estimate = try #require(clock.latest(at: start + 500, maxAge: 1000))
    #expect(estimate >= time(start + 500) && estimate <= time(start + 510))
    #expect(clock.latest(at: start + 1010, maxAge: 1000) == nil)
    clock.reset()
    #expect(clock.latest(at: start + 500, maxAge: 1000) == nil)
  }
}
