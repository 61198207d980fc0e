import Idempotency
import NIOCore
import Platform
import TestSupport
import Testing
import Wire

@testable import Store

/// Claims without a script, and completions without Redis' time.
@Suite(.timeLimit(.minutes(1)))
struct PlainClaimTests {
  @Test func `a new record and a replay take no script`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server).loaded) { node in
      try await node.warm()
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

  @Test func `a record is the same text, whichever command has made it`() async throws {
    let server = try await RedisServer()
    var texts: [String] = []
    for settings in [RedisEndpointSettings.on(server), .on(server).loaded] {
      try await RedisNode.run(settings) { node in
        try await node.warm()
        // A loss of records before this one.
        _ = node.subscriber.epoch.seen("1.successor", under: "successor")
        let scripts = try server.scriptCount
        let request = Samples.request(
          attribution: Attribution(
            route: "orders", keyDigest: "12345678", callerDigest: "87654321", node: "n"))
        let claim = try await node.store.granted(request)
        #expect(try server.scriptCount == scripts + (settings.load.minPending == 0 ? 0 : 1))
        #expect(claim.attempt == Claim.attemptsPerGeneration + 1)
        let reply = try #require(try server.command(["GET", node.key(of: claim.id)]))
        var words = reply.split(separator: " ").map(String.init)
        let first = try #require(Int64(words[4])), since = try #require(Int64(words[5]))
        #expect(first == claim.firstSeen.milliseconds && since - first < 10_000 && since >= first)
        // The owner, the times and the digest differ.
        for index in [1, 4, 5, 10] { words[index] = "" }
        texts.append(words.joined(separator: " "))
        let left = try server.command(["PTTL", node.key(of: claim.id)])?.dropFirst()
        let time = try #require(left.flatMap { Int64($0) })
        #expect(time > 1_230_000 && time <= 1_260_000)
      }
    }
    #expect(texts[0] == texts[1] && texts[0].contains("in_flight"), "\(texts)")
  }

  @Test func `the script decides about every other record`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server).loaded) { node in
      try await node.warm()
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
      try await node.warm()
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
      let done = Watched<[CompletionReply?]>([])
      let (store, context) = (node.store.store, node.store.context)
      // All begin in one turn of the loop, before the first one has its reply.
      context.loop.execute {
        for claim in claims {
          context.task {
            let reply = try? await store.complete(claim, with: Samples.completion())
            done.withValue { $0.append(reply) }
          }
        }
      }
      let replies = try await done.until("all completions") { $0.count == 10 ? $0 : nil }
      #expect(replies.allSatisfy { $0?.outcome == .done && $0?.record != nil })
      #expect(try server.calls(of: "time") <= before + 9)
    }
  }

  @Test func `a claim that the server reads after it was repeated and given back claims nothing`()
    async throws
  {
    let server = try await RedisServer()
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server, timeout: 2000).loaded, relayed: relay.port) { node in
      try await node.warm()
      let sets = try server.calls(of: "set")
      relay.set(.haunt)
      let claim = try await node.store.granted(Samples.request())
      #expect(relay.isHaunted)
      // The first copy is on its way yet, and has no deadline.
      #expect(try await node.store.release(claim, .deleted) == .done)
      #expect(try await node.store.find(claim.id) == .absent)
      relay.release()
      // The server executes later what it gets over another connection after that.
      try await until("the relay has no connection that the server has closed") { relay.endedCount > 0 }
      #expect(try await node.store.find(claim.id) == .absent)
      #expect(try server.calls(of: "set") == sets + 1)
    }
    await relay.close()
  }

  /// A claim without a script, whose reply is lost, has taken nothing over. The script that follows it is granted a
  /// record that was released, and not one of unknown outcome.
  @Test func `a lost claim without a script leaves a released record free`() async throws {
    let server = try await RedisServer()
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server).loaded, relayed: relay.port) { node in
      let lost = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(lost) == .done)
      let second = try await node.store.granted(Samples.again(lost, takeOver: .afterSettle(0)))
      #expect(try await node.store.release(second, .remembered) == .done)
      try await node.warm()
      relay.set(.cut(after: 0))
      let third = try await node.store.granted(Samples.again(lost, takeOver: .afterSettle(0)))
      #expect(third.attempt == 3 && third.copiedUntil != nil)
      #expect(node.store.store.counters.reconnections > 0)
    }
    await relay.close()
  }

  @Test func `earlier connections are ended again until the server has confirmed it`() async throws {
    let (kills, clients) = (Watched<[String]>([]), Watched(0))
    let server = try ScriptedRedis { words in
      switch (words[0], words.count > 1 ? words[1] : "") {
      case ("CLIENT", "ID"): return ":\(clients.value)\r\n"
      case ("CLIENT", "KILL"):
        guard words[3] != "\(Int64.max)" else { return ":0\r\n" }
        kills.withValue { $0.append(words[3]) }
        return kills.value.count == 1 ? "" : ":1\r\n"
      case ("CLIENT", _): return "+OK\r\n"
      case ("SCRIPT", _): return "$40\r\n\(String(repeating: "a", count: 40))\r\n"
      case ("TIME", _): return ScriptedRedis.time()
      case ("INFO", "server"):
        let text = "redis_version:7.0.15\r\nrun_id:abc\r\n"
        return "$\(text.utf8.count)\r\n\(text)\r\n"
      case ("INFO", let part):
        // Once for each connection that takes commands on records.
        if part == "memory" { clients.withValue { $0 += 1 } }
        return "$0\r\n\r\n"
      case ("HSETNX", _), ("PUBLISH", _): return ":0\r\n"
      case ("HGET", _): return "$1\r\ne\r\n"
      case ("SUBSCRIBE", _): return "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
      case ("PING", _): return "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
      // The connection is lost under the first claim.
      case ("SET", _): return ""
      case ("EVALSHA", _): return ":\(WallClock.milliseconds())\r\n"
      default: return "-ERR unknown command\r\n"
      }
    }
    var settings = RedisEndpointSettings(address: .tcp(host: "127.0.0.1", port: server.port))
    settings.timeout = .seconds(20)
    settings.inspectionInterval = .seconds(3600)
    try await RedisNode.run(settings.loaded) { node in
      // The first connection is cut, and the second one when it asks for the end of the first.
      try await node.store.ping()
      let claim = try await node.store.granted(Samples.request())
      #expect(claim.attempt == 1 && claim.copiedUntil != nil)
      try await kills.until("all kills") { $0.count == 2 ? true : nil }
      #expect(kills.value == ["1", "1"])
    }
  }

  @Test func `lost connections are known until their end is confirmed, those of each run apart`() {
    let sessions = RedisSessions()
    #expect(!sessions.areOpen)
    for client in [1, 5] as [Int64] { sessions.left(RedisSession(run: "a", client: client)) }
    sessions.left(RedisSession(run: "b", client: 1))
    #expect(
      sessions.open(at: "a") == [1, 5] && sessions.open(at: "b") == [1] && sessions.open(at: "c") == [])
    sessions.ended(RedisSession(run: "a", client: 1))
    #expect(sessions.open(at: "a") == [5] && sessions.open(at: "b") == [1])
    for client in 0..<5000 as Range<Int64> { sessions.left(RedisSession(run: "a", client: client)) }
    #expect(sessions.open(at: "a").count == 4096 && sessions.areOpen)
  }

  @Test func `a lease that began before the clock was set begins anew`() async throws {
    let clock = try await SteppedClock()
    let server = try await RedisServer(clock: clock)
    try await RedisNode.run(.on(server).loaded) { node in
      try await node.warm()
      let (request, granted) = (Samples.request(), Watched<Claim?>(nil))
      try clock.set(ahead: 3600)
      node.store.context.loop.execute {
        // Its reply shows the step before that of the claim is read.
        node.store.store.nodes.single?.readTime()
        node.store.store.startClaim(request) { reply in
          if case .success(.granted(let claim)) = reply { granted.withValue { $0 = claim } }
        }
      }
      let claim = try await granted.until("the grant") { $0 }
      // Without a reply to the script it would have been given back.
      #expect(claim.copiedUntil != nil)
      guard case .inFlight(let left, _) = try await node.store.find(claim.id) else {
        throw Unexpected(what: "its lease has lapsed")
      }
      #expect(left > request.lease - 10_000)
    }
  }

  @Test func `with replicas a completion has the time of its execution`() async throws {
    let pair = try await ReplicaPair()
    try await RedisNode.run(pair.settings().loaded) { node in
      try await node.warm()
      let claim = try await node.store.granted(Samples.request())
      let times = try pair.master.calls(of: "time")
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      #expect(try pair.master.calls(of: "time") == times + 1)
    }
    await pair.close()
  }

  @Test func `without the right to end its connections every claim takes the script`() async throws {
    let server = try await RedisServer()
    try server.command(["ACL", "SETUSER", "semel", "on", ">word", "~*", "&*", "+@all", "-client|kill"])
    var settings = RedisEndpointSettings.on(server).loaded
    settings.login.user = "semel"
    settings.login.password = "word"
    try await RedisNode.run(settings) { node in
      try await node.warm()
      let scripts = try server.scriptCount
      _ = try await node.store.granted(Samples.request())
      #expect(try server.scriptCount == scripts + 1)
    }
  }

  @Test func `operators choose whether claims take no script`() async throws {
    let server = try await RedisServer()
    for (load, isPlain) in [(RedisLoad.default, false), (.always, true), (.never, false)] {
      var settings = RedisEndpointSettings.on(server)
      settings.load = load
      try await RedisNode.run(settings) { node in
        try await node.warm()
        // The time may have been too long ago on a busy machine.
        try await until("a claim of that kind") {
          try await node.store.ping()
          let scripts = try server.scriptCount
          _ = try await node.store.granted(Samples.request())
          return try server.scriptCount == scripts + (isPlain ? 0 : 1)
        }
      }
    }
    let steps = try RedisHandshake(.on(server), for: .records).steps.map(\.command)
    var never = RedisEndpointSettings.on(server)
    never.load = .never
    let fewer = try RedisHandshake(never, for: .records).steps.map(\.command)
    #expect(steps.contains(RedisSession.trial) && !fewer.contains { $0[0] == "CLIENT" && $0[1] != "SETNAME" })
  }

  @Test func `a right that is withdrawn is missed aloud, and claims take the script`() async throws {
    let server = try await RedisServer()
    let relay = try await RedisRelay(to: server.port)
    try server.command(["ACL", "SETUSER", "semel", "on", ">word", "~*", "&*", "+@all"])
    var settings = RedisEndpointSettings.on(server, timeout: 2000).loaded
    settings.login.user = "semel"
    settings.login.password = "word"
    try await RedisNode.run(settings, relayed: relay.port) { node in
      try await node.warm()
      try server.command(["ACL", "SETUSER", "semel", "-client|kill"])
      relay.set(.haunt)
      let claim = try await node.store.granted(Samples.request())
      #expect(claim.attempt == 1 && relay.isHaunted)
      try await until("a warning") {
        node.log.messages.contains { $0.contains("end its earlier connections") }
      }
      let scripts = try server.scriptCount
      _ = try await node.store.granted(Samples.request())
      #expect(try server.scriptCount == scripts + 1)
    }
    await relay.close()
  }

  @Test func `a full Redis still replays`() async throws {
    let server = try await RedisServer(arguments: ["--maxmemory-policy", "noeviction"])
    try await RedisNode.run(.on(server).loaded) { node in
      try await node.warm()
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
    #expect(clock.latest(at: start + 1008, maxAge: 1000) == nil)
    clock.reset()
    #expect(clock.latest(at: start + 500, maxAge: 1000) == nil)
    // The handshake of the next connection took long.
    _ = clock.update(to: time(start + 700), sentAt: start + 200, at: start + 700)
    #expect(clock.latest(at: start + 700, maxAge: 1000) == nil)
    // A step that does not count.
    let stepped = StoreInstant(milliseconds: time(start + 800).milliseconds + 60)
    #expect(clock.update(to: stepped, sentAt: start + 790, at: start + 801) == nil)
    let after = try #require(clock.latest(at: start + 801, maxAge: 1000))
    #expect(after.milliseconds >= time(start + 801).milliseconds + 60)
  }
}
