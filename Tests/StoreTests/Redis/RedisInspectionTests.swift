import Idempotency
import Logging
import TestSupport
import Testing

@testable import Store

/// Settings that were checked at the handshake and change on a live Redis.
struct RedisInspectionTests {
  @Test func `a node that may not publish bypasses its cache, and logs it, until it may`() async throws {
    let server = try await RedisServer(arguments: [
      "--user", "quiet", "on", ">word", "~*", "&*", "+@all", "-publish",
    ])
    var settings = RedisEndpointSettings.on(server)
    settings.inspectionInterval = 200
    settings.login.user = "quiet"
    settings.login.password = "word"
    let cache = LocalCache(capacityBytes: 1 << 20, isSubscribed: false)
    try await RedisNode.run(settings) { node in
      node.subscriber.observe { follow($0, cache) }
      let claim = try await node.store.completed()
      try await until("the refusal is seen") { node.subscriber.doubtsStanding >= 1 }
      #expect(cache.ticket(for: claim.id) == nil)
      try await until("the warning") {
        node.log.messages.contains { $0.contains("does not let Semel publish") && $0.contains("+publish") }
      }
      try server.command(["ACL", "SETUSER", "quiet", "+publish"])
      try await until("the cache is used") { cache.ticket(for: claim.id) != nil }
      try server.command(["ACL", "SETUSER", "quiet", "-publish"])
      try await until("the cache is passed by") { cache.ticket(for: claim.id) == nil }
      try await until("the second warning") {
        node.log.messages.count { $0.contains("does not let Semel publish") } == 2
      }
    }
  }

  @Test func `a Redis that loses durability is warned of, and refused with require_durable`()
    async throws
  {
    let server = try await RedisServer(arguments: ["--maxmemory", "100mb"], appendOnly: true)
    var settings = RedisEndpointSettings.on(server)
    settings.inspectionInterval = 200
    settings.requireDurable = true
    try await RedisNode.run(settings) { node in
      _ = try await node.store.granted(Samples.request())
      for (change, back, advice) in [
        (["appendonly", "no"], ["appendonly", "yes"], "set appendonly yes"),
        (["maxmemory-policy", "allkeys-random"], ["maxmemory-policy", "noeviction"], "set noeviction"),
      ] {
        try server.command(["CONFIG", "SET"] + change)
        try await until("claims are refused") { await node.refusal()?.contains("require_durable") == true }
        try await until("the doubt stands") { node.subscriber.doubtsStanding == 1 }
        #expect(node.log.messages.count { $0.contains(advice) } == 1)
        // Records can still be read.
        #expect(try await node.store.find(Samples.id()) == .absent)
        try server.command(["CONFIG", "SET"] + back)
        try await until("claims are granted") { await node.refusal() == nil }
        try await until("no doubt stands") { node.subscriber.doubtsStanding == 0 }
      }
      try await until("both returns are in the log") {
        node.log.messages.count { $0 == "Redis keeps its records again" } == 2
      }
    }
  }

  @Test func `a Redis that has evicted keys is doubted until its operator has seen to it`() async throws {
    let server = try await RedisServer(
      arguments: ["--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random"], appendOnly: true)
    let body = String(repeating: "x", count: 100_000)
    for number in 0..<60 { try server.command(["SET", "\(number)", body]) }
    for change in [["maxmemory", "0"], ["maxmemory-policy", "noeviction"]] {
      try server.command(["CONFIG", "SET"] + change)
    }
    var settings = RedisEndpointSettings.on(server)
    settings.inspectionInterval = 200
    settings.requireDurable = true
    try await RedisNode.run(settings) { node in
      // From its first connection on.
      #expect(await node.refusal()?.contains("keys, which may have been records") == true)
      try await until("the inspection has found it, too") { node.subscriber.doubtsStanding == 1 }
      let findings = await RedisExamination(settings, now: { 0 }).findings()
      #expect(findings.contains { $0.isError && $0.text.contains("it has evicted") }, "\(findings)")
      try server.command(["CONFIG", "RESETSTAT"])
      try await until("claims are granted") { await node.refusal() == nil }
      #expect(node.subscriber.doubtsStanding == 0)
      // It has lost none of them at once, nor was it replaced.
      #expect(node.subscriber.lossCount == 0 && node.subscriber.failovers == 0)
    }
  }

  @Test(arguments: [false, true])
  func `a store that came back empty is reported before the first claim`(_ isRequired: Bool) async throws {
    let server = try await RedisServer(arguments: ["--maxmemory", "100mb"], appendOnly: isRequired)
    var settings = RedisEndpointSettings.on(server)
    settings.inspectionInterval = 200
    settings.requireDurable = isRequired
    let cache = LocalCache(capacityBytes: 1 << 20, isSubscribed: false)
    try await RedisNode.run(settings) { node in
      node.subscriber.observe { follow($0, cache) }
      let claim = try await node.store.completed()
      try await until("the cache is used") { cache.ticket(for: claim.id) != nil }
      try server.command(["FLUSHALL"])
      // A new connection finds it at once, a standing one within seconds.
      if !isRequired { try server.command(["CLIENT", "KILL", "TYPE", "normal"]) }
      try await until("the loss is seen") { node.subscriber.lossCount == 1 }
      #expect(node.subscriber.failovers == 0)
      try await until("every loop knows it") { (await node.refusal() != nil) == isRequired }
      #expect(node.log.messages.count { $0.contains("recorded outcomes are gone") } == 1)
      // Another node begins with the store as it is.
      let other = node.sibling()
      #expect(await other.refusal() == nil)
      other.close()
      #expect(node.subscriber.lossCount == 1)
    }
  }

  @Test func `attempt numbers do not begin again after a loss`() async throws {
    let server = try await RedisServer()
    var settings = RedisEndpointSettings.on(server)
    settings.inspectionInterval = 200
    try await RedisNode.run(settings) { node in
      let sibling = node.sibling()
      try await sibling.store.eventually()
      let before = try await node.store.granted(Samples.request())
      #expect(before.attempt == 1)
      try server.command(["FLUSHALL"])
      try await until("the loss is seen") {
        node.subscriber.lossCount == 1 && sibling.subscriber.lossCount == 1
      }
      let request = Samples.request()
      let first = try await node.store.granted(request)
      #expect(first.attempt == 1_000_000_001)
      #expect(try await node.store.release(first, .remembered) == .done)
      let second = try await sibling.store.granted(Samples.again(first))
      #expect(second.attempt == 1_000_000_002)
      #expect(try await sibling.store.complete(second, with: Samples.completion()).outcome == .done)
      try await until("the next generation is written") {
        try server.command(["HGET", "\(settings.namespace):facts", "epoch"])?.hasPrefix("1.") == true
      }
      // A process that starts now goes on from there.
      let later = node.sibling()
      try await later.store.eventually()
      #expect(try await later.store.granted(Samples.request()).attempt == 1_000_000_001)
      for node in [node, sibling, later] { #expect(node.subscriber.lossCount <= 1) }
      sibling.close()
      later.close()
    }
  }

  @Test func `a single master of a cluster that forgets is found`() async throws {
    let cluster = try await RedisCluster()
    var settings = RedisEndpointSettings.on(cluster.ports)
    settings.inspectionInterval = 200
    try await RedisNode.run(settings) { node in
      _ = try await node.store.completed()
      for (number, master) in cluster.masters.enumerated() {
        try await until("the master's epoch is known") { try master.hasEpoch }
        try master.command(["FLUSHALL"])
        try await until("the loss is seen") { node.subscriber.lossCount == number + 1 }
        #expect(node.subscriber.failovers == 0)
        try await until("claims follow") {
          try await node.store.granted(Samples.request()).attempt == (number + 1) * 1_000_000_000 + 1
        }
      }
    }
  }

  /// Returns the settings of a user who may do everything on the servers.
  private func withUser(_ servers: [RedisServer], _ settings: RedisEndpointSettings) throws
    -> RedisEndpointSettings
  {
    for server in servers {
      try server.command(["ACL", "SETUSER", "semel", "on", ">word", "~*", "&*", "+@all"])
    }
    var settings = settings
    settings.inspectionInterval = 200
    settings.login.user = "semel"
    settings.login.password = "word"
    return settings
  }

  @Test(arguments: [
    (["-evalsha"], ["+evalsha"], "+evalsha"), (["-@scripting"], ["+@all"], "+evalsha"),
    (["-set"], ["+set"], "+set"), (["-get"], ["+get"], "+get"), (["-time"], ["+time"], "+time"),
    (["resetkeys"], ["~*"], ":*"), (["resetkeys", "~others:*"], ["~*"], ":*"),
  ])
  func `a Redis that forbids claims to Semel's user fails until it allows them`(
    _ change: [String], _ back: [String], _ rule: String
  ) async throws {
    let server = try await RedisServer()
    let settings = try withUser([server], .on(server))
    try await RedisNode.run(settings) { node in
      _ = try await node.store.granted(Samples.request())
      #expect(node.status == .serving)
      try server.command(["ACL", "SETUSER", "semel"] + change)
      try await until("it fails") { if case .failing = node.status { true } else { false } }
      let wanted = rule == ":*" ? "~\(settings.namespace):*" : rule
      #expect("\(node.status)".contains("allow \(wanted) in its ACL (NOPERM"), "\(node.status)")
      await #expect(throws: StoreError.self) { try await node.store.claim(Samples.request()) }
      try server.command(["ACL", "SETUSER", "semel"] + back)
      try await until("it serves again") { node.status == .serving }
      _ = try await node.store.completed()
      #expect(node.log.messages(at: .error).count { $0.contains("Redis takes no changes") } == 1)
      try await until("the return is in the log") {
        node.log.messages.count { $0 == "Redis takes changes again" } == 1
      }
    }
  }

  @Test func `the right to send a script whole matters once Redis has lost it`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(try withUser([server], .on(server))) { node in
      _ = try await node.store.granted(Samples.request())
      try server.command(["ACL", "SETUSER", "semel", "-eval"])
      _ = try await node.store.granted(Samples.request())
      #expect(node.status == .serving)
      try server.command(["SCRIPT", "FLUSH"])
      try await until("it fails") { "\(node.status)".contains("allow +eval in its ACL (NOPERM") }
      await #expect(throws: StoreError.self) { try await node.store.claim(Samples.request()) }
      try server.command(["ACL", "SETUSER", "semel", "+eval"])
      try await until("it serves again") { node.status == .serving }
      _ = try await node.store.granted(Samples.request())
    }
  }

  @Test func `a single master of a cluster that forbids claims is named`() async throws {
    let cluster = try await RedisCluster()
    let settings = try withUser(cluster.masters, .on(cluster.ports))
    try await RedisNode.run(settings) { node in
      _ = try await node.store.granted(Samples.request())
      try await until("it serves") { node.status == .serving }
      let master = cluster.masters[1]
      for (change, back) in [("-set", "+set"), ("resetkeys", "~*")] {
        try master.command(["ACL", "SETUSER", "semel", change])
        try await until("it fails") {
          let text = "\(node.status)"
          return text.hasPrefix("failing") && text.contains(":\(master.port): Redis forbids ")
        }
        try master.command(["ACL", "SETUSER", "semel", back])
        try await until("it serves again") { node.status == .serving }
      }
    }
  }

  @Test func `the trial of a claim changes nothing, and other errors are none of rights`() async throws {
    let server = try await RedisServer()
    var settings = RedisEndpointSettings.on(server)
    settings.inspectionInterval = 100
    try await RedisNode.run(settings) { node in
      _ = try await node.store.granted(Samples.request())
      let before = try server.command(["DBSIZE"])
      try await until("claims were tried") {
        try server.setCount >= 4
      }
      // The record, and the facts of the namespace.
      #expect(before == ":2")
      #expect(try server.command(["DBSIZE"]) == before)
      let errors = try server.command(["INFO", "errorstats"]) ?? ""
      #expect(!errors.contains("errorstat_ERR") && !errors.contains("errorstat_NOSCRIPT"), "\(errors)")
    }
    var facts = RedisFacts()
    for error in ["MOVED 1 127.0.0.1:1", "OOM command not allowed", "READONLY no", "BUSY Redis"] {
      for step in Self.trials() { facts.take(.error(error), to: step) }
    }
    #expect(facts.obstacle == nil)
  }

  private static func trials(beside factsKey: String = "semel:facts") -> [RedisHandshake.Step] {
    RedisFacts.steps(RedisKeys(namespace: "semel"), factsKey: factsKey, digest: "d").filter {
      if case .trial = $0 { true } else { false }
    }
  }

  @Test func `the right that is missing is named, and that to send scripts only if one was lost`() {
    let forbidden = RedisValue.error("NOPERM this user has no permissions to run the 'eval' command")
    var facts = RedisFacts()
    for step in Self.trials() where step.command[0] == "EVAL" { facts.take(forbidden, to: step) }
    #expect(facts.obstacle == nil)
    for step in Self.trials() {
      let words = step.command
      facts.take(words[0] == "EVAL" ? forbidden : .error("NOSCRIPT No matching script"), to: step)
    }
    #expect(facts.obstacle?.hasPrefix("Redis forbids EVAL to Semel's user: allow +eval in its ACL (") == true)
    var locked = RedisFacts()
    for step in Self.trials() {
      locked.take(.error("NOPERM No permissions to access a key"), to: step)
    }
    #expect(
      locked.obstacle?.hasPrefix("Redis forbids the keys of semel to Semel's user: allow ~semel:* in") == true
    )
  }

  @Test func `a claim is tried in the slot of the server's facts`() {
    for (factsKey, key) in [("semel:facts", "semel:{trial}"), ("semel:{17}:facts", "semel:{17}")] {
      #expect(Self.trials(beside: factsKey).count == 5)
      for words in Self.trials(beside: factsKey).map(\.command) where words[0] != "TIME" {
        #expect(words.contains(key), "\(words)")
      }
    }
  }

  private func follow(_ event: RedisSubscriber.Event, _ cache: LocalCache) {
    switch event {
    case .up: cache.subscriptionUp()
    case .down: cache.subscriptionDown()
    case .heard(let moment): cache.heardInvalidations(from: moment)
    case .invalidated(let id): cache.invalidate(id)
    }
  }
}

extension RedisNode {
  var status: StoreState.Status { store.store.counters.monitor.state.status }

  /// The reason for which a claim is refused; `nil` if it is granted.
  fileprivate func refusal() async -> String? {
    do throws(StoreError) {
      _ = try await store.claim(Samples.request())
      return nil
    } catch {
      return "\(error)"
    }
  }
}

extension RedisServer {
  /// Whether an inspection has written its epoch.
  fileprivate var hasEpoch: Bool {
    get throws { try command(["KEYS", "*}:facts"])?.isEmpty == false }
  }

  /// The number of `SET` commands that it has executed, also in scripts.
  fileprivate var setCount: Int {
    get throws {
      let prefix = "cmdstat_set:calls="
      let lines = try command(["INFO", "commandstats"])?.split(whereSeparator: \.isNewline) ?? []
      return lines.first { $0.hasPrefix(prefix) }.flatMap {
        Int($0.dropFirst(prefix.count).prefix { $0.isNumber })
      } ?? 0
    }
  }
}

extension LoopConfined {
  /// Waits for a connection.
  func eventually() async throws {
    while (try? await ping()) == nil { try await Task.sleep(for: .milliseconds(5)) }
  }
}
