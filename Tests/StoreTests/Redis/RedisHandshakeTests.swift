import Idempotency
import Testing
import Wire

@testable import Store

/// The pure parts of a connection's life.
struct RedisHandshakeTests {
  @Test func `a new connection logs in, loads every script and inspects Redis`() throws {
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.login.user = "semel"
    settings.login.password = "word"
    settings.database = 2
    settings.demand = ReplicaDemand(replicas: 2)
    var handshake = try RedisHandshake(settings, for: .records)
    #expect(handshake.steps[0].command == ["AUTH", "semel", "word"])
    #expect(handshake.steps[1].command == ["SELECT", "2"])
    var action = RedisHandshake.Action.wait
    for step in handshake.steps {
      #expect(action == .wait)
      action =
        switch step {
        case .name: handshake.received(.error("NOPERM no"))
        case .load(let script): handshake.received(.text("digest \(script.rawValue)"))
        case .clock: handshake.received(Self.time)
        case .info: handshake.received(Self.info)
        case .wait: handshake.received(.integer(0))
        case .identity: handshake.received(.integer(12))
        case .makeEpoch: handshake.received(.integer(0))
        case .readEpoch(let key): handshake.received(key == "semel:facts" ? .text("e1") : .null)
        case .authenticate, .select, .role: handshake.received(.text("OK"))
        case .publish, .trial: throw Unexpected(what: "a connection for records tries nothing by itself")
        }
    }
    guard case .ready(let result) = action else { throw Unexpected(what: "\(action)") }
    #expect(result.now == StoreInstant(milliseconds: 1_700_000_000_077))
    #expect(result.digests == RedisScript.allCases.map { "digest \($0.rawValue)" })
    #expect(result.facts.doubts.isEmpty)
    #expect(result.facts.epochs == ["semel:facts": "e1"])
    #expect(result.facts.run == "abc")
    #expect(result.facts.history?.id == "h1" && result.facts.history?.formerID == nil)
  }

  private static let info = RedisValue.text(
    [
      "# Server", "redis_version:7.0.15", "run_id:abc", "# Memory", "maxmemory:0",
      "maxmemory_policy:allkeys-lru", "# Persistence", "aof_enabled:1", "# Stats", "evicted_keys:0",
      "# Replication", "role:master", "master_replid:h1", "master_replid2:0000", "",
    ].joined(separator: "\r\n"))

  @Test(arguments: [
    ("BUSY Redis is busy running a script.", "SCRIPT KILL"), ("NOPERM no", nil), ("ERR unknown command", nil),
  ])
  func `a server that does not say what it is now is asked again`(_ error: String, _ advice: String?) throws {
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.demand = ReplicaDemand(replicas: 1)
    var handshake = try RedisHandshake(settings, for: .records)
    var action = RedisHandshake.Action.wait
    for step in handshake.steps where action == .wait {
      action =
        switch step {
        case .clock: handshake.received(Self.time)
        case .info, .identity: handshake.received(.error(error))
        case .wait: handshake.received(.integer(0))
        default: handshake.received(.text("1"))
        }
    }
    switch action {
    case .ready(let result):
      #expect(advice == nil && result.facts.run == nil)
      #expect(result.facts.doubts.count { $0.contains("cannot be checked") } == 2)
    case .fail(let reason):
      let part = try #require(advice)
      #expect(reason.contains(part))
    case .wait: throw Unexpected(what: "the handshake goes on")
    }
  }

  @Test(arguments: [
    ("ERR max number of clients reached", "raise its maxclients"),
    ("DENIED Redis is running in protected mode because", "give it a password"),
  ])
  func `a server that refuses the connection is not taken for one that refuses its name`(
    _ error: String, _ advice: String
  ) throws {
    var handshake = try RedisHandshake(
      RedisEndpointSettings(address: .unix(path: "/run/redis.sock")), for: .records)
    guard case .fail(let reason) = handshake.received(.error(error)) else {
      throw Unexpected(what: "accepted")
    }
    #expect(reason.contains(advice))
  }

  @Test(
    arguments: [
      .text("1700000000"), .integer(1_700_000_000), .null, .array([]), .array([.text("1700000000")]),
      .array([.text("0"), .text("0")]), .array([.text("-1"), .text("0")]),
      .array([.text("\(Int64.max)"), .text("0")]), .array([.text("1700000000"), .text("1000000")]),
      .array([.text("x"), .text("0")]),
    ] as [RedisValue])
  func `a time that no clock shows is no time`(_ time: RedisValue) throws {
    var handshake = try RedisHandshake(
      RedisEndpointSettings(address: .unix(path: "/run/redis.sock")), for: .records)
    var action = RedisHandshake.Action.wait
    for step in handshake.steps {
      if case .clock = step {
        action = handshake.received(time)
        break
      }
      action = handshake.received(.text("digest"))
    }
    guard case .fail = action else { throw Unexpected(what: "\(action)") }
  }

  @Test(arguments: [
    ("ERR unknown command 'WAITAOF', with args beginning with: '1'", "this server has no WAITAOF"),
    ("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.", "set appendonly yes"),
    ("ERR WAIT cannot be used with replica instances. Please also note", "this Redis is a replica"),
    ("NOPERM this user has no permissions to run the 'wait' command", "widen its ACL"),
  ])
  func `a server that cannot wait for copies is refused`(_ error: String, _ advice: String) throws {
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.demand = ReplicaDemand(replicas: 1, isOnDisk: true)
    var handshake = try RedisHandshake(settings, for: .records)
    for step in handshake.steps {
      var reply = RedisValue.text("1")
      if case .clock = step { reply = Self.time }
      guard case .wait = step else {
        _ = handshake.received(reply)
        continue
      }
      #expect(step.command == ["WAITAOF", "1", "0", "1"])
      guard case .fail(let reason) = handshake.received(.error(error)) else {
        Issue.record("the connection was accepted")
        return
      }
      #expect(reason.contains(advice), "\(reason)")
      return
    }
    Issue.record("nothing tests whether the server can wait")
  }

  private static let time = RedisValue.array([.text("1700000000"), .text("77000")])

  @Test(arguments: [("12", "13", "abc", "abc"), ("12", "12", "abc", "xyz"), ("12", "12", "abc", "abc")])
  func `a proxy that spreads the commands of a connection is refused`(
    _ client: String, _ laterClient: String, _ run: String, _ laterRun: String
  ) throws {
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.demand = ReplicaDemand(replicas: 1)
    var handshake = try RedisHandshake(settings, for: .records)
    var (clients, runs) = ([client, laterClient], [run, laterRun])
    var action = RedisHandshake.Action.wait
    for step in handshake.steps where action == .wait {
      action =
        switch step {
        case .clock: handshake.received(Self.time)
        case .info: handshake.received(.text("redis_version:7.0.15\r\nrun_id:\(runs.removeFirst())\r\n"))
        case .identity: handshake.received(.integer(Int64(clients.removeFirst()) ?? 0))
        case .wait: handshake.received(.integer(0))
        default: handshake.received(.text("1"))
        }
    }
    if client == laterClient, run == laterRun {
      guard case .ready = action else { throw Unexpected(what: "\(action)") }
    } else {
      #expect(action == .fail(RedisHandshake.sharedConnection))
    }
  }

  @Test func `every script declares a key`() throws {
    for script in RedisScript.allCases { #expect(script.arguments.keys == 1) }
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.demand = ReplicaDemand(replicas: 1)
    let commands =
      try RedisHandshake(settings, for: .records).steps.map(\.command)
      + RedisFacts.steps(RedisKeys(namespace: "semel"), factsKey: "k", digest: "d").map(\.command)
      + RedisRights(namespace: "semel", user: nil, topology: .standalone).all.map(\.command)
    let scripts = commands.filter { $0[0].hasPrefix("EVAL") }
    #expect(!scripts.isEmpty)
    for words in scripts { #expect(words[2] == "1" && words.count > 3, "\(words)") }
  }

  @Test func `a subscription connection checks its right to publish`() throws {
    let settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    var handshake = try RedisHandshake(settings, for: .subscriptions)
    #expect(handshake.steps.map(\.command).last == ["PUBLISH", "semel:invalidate", ""])
    #expect(handshake.received(.text("OK")) == .wait)
    guard case .ready(let result) = handshake.received(.error("NOPERM this user has no permissions")) else {
      Issue.record("the connection was refused")
      return
    }
    #expect(result.facts.publishRefusal?.contains("widen its ACL") == true)
  }

  @Test func `a late deadline is judged again, and a dead Redis is found all the same`() {
    let due = BootInstant(nanoseconds: 1_000_000_000)
    var deadline = LateReplyDeadline()
    #expect(deadline.verdict(due: due, now: due + 50, hasUnread: false) == .over)
    // The loop stood still.
    #expect(deadline.verdict(due: due, now: due + 51, hasUnread: false) == .readUntil(due + 151))
    #expect(deadline.verdict(due: due + 151, now: due + 160, hasUnread: false) == .over)
    // Something waits to be read, again and again.
    for _ in 0..<LateReplyDeadline.maxReadings {
      #expect(
        deadline.verdict(due: due, now: due, hasUnread: true) == .readUntil(due + LateReplyDeadline.grace))
    }
    #expect(deadline.verdict(due: due, now: due, hasUnread: true) == .over)
    _ = deadline.verdict(due: due, now: due, hasUnread: true)
    deadline.hasRead()
    for _ in 0..<LateReplyDeadline.maxReadings {
      #expect(deadline.verdict(due: due, now: due, hasUnread: true) != .over)
    }
  }

  @Test func `a refused login ends the connection with a remedy`() throws {
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.login.password = "wrong"
    var handshake = try RedisHandshake(settings, for: .subscriptions)
    #expect(
      handshake.steps.map(\.command) == [
        ["AUTH", "wrong"], ["CLIENT", "SETNAME", "semel"], ["PUBLISH", "semel:invalidate", ""],
      ])
    guard case .fail(let text) = handshake.received(.error("WRONGPASS invalid username-password pair")) else {
      Issue.record("the login was taken")
      return
    }
    #expect(text.contains("correct them"))
  }

  @Test(arguments: [
    ("OOM command not allowed when used memory > 'maxmemory'.", "raise its maxmemory"),
    (
      "ERR Error running script (call to f_abc): @user_script:9: @user_script: 9: -READONLY You can't write",
      "read-only replica"
    ),
    ("LOADING Redis is loading the dataset in memory", "wait until it is ready"),
    ("BUSY Redis is busy running a script.", "SCRIPT KILL"),
    ("MISCONF Errors writing to the AOF file", "cannot write to its disk"),
    ("MASTERDOWN Link with MASTER is down", "lost its master"),
    ("ERR max number of clients reached", "raise its maxclients"),
  ])
  func `an error of Redis' names the remedy`(_ text: String, _ advice: String) {
    guard case .unavailable(let reason) = RedisRefusal.error(text) else {
      Issue.record("not unavailable")
      return
    }
    #expect(reason.contains(advice))
    #expect(reason.contains(text))
  }

  @Test(arguments: [
    ("ERR something new", "Redis refused the command (ERR something new)"),
    ("ERR value is not an integer or out of range script: f_abc", "Redis refused the command"),
    (
      "ERR Error running script (call to f_abc): @user_script:9: @user_script: 9: -NOPERM no", "widen its ACL"
    ),
    ("NOPERM this user has no permissions to run the 'evalsha' command", "widen its ACL"),
  ])
  func `a Redis that forbids a command, or fails in it, was reached`(_ text: String, _ advice: String) {
    guard case .refused(let reason) = RedisRefusal.error(text) else {
      Issue.record("not refused")
      return
    }
    #expect(reason.contains(advice) && reason.contains(text))
  }

  @Test func `the estimate of the store's clock is never ahead`() {
    var clock = RedisClock()
    let start = BootInstant(nanoseconds: 1_000_000_000)
    #expect(clock.estimate(at: start) == nil)
    _ = clock.update(to: StoreInstant(milliseconds: 5000), sentAt: start, at: start)
    #expect(clock.estimate(at: start) == StoreInstant(milliseconds: 5000))
    #expect(clock.estimate(at: start + 1) == StoreInstant(milliseconds: 5000))
    #expect(clock.estimate(at: start + 1000) == StoreInstant(milliseconds: 5999))
    // A store whose clock was set back is believed at once.
    _ = clock.update(to: StoreInstant(milliseconds: 100), sentAt: start + 1000, at: start + 1000)
    #expect(clock.estimate(at: start + 1000) == StoreInstant(milliseconds: 100))
    clock.reset()
    #expect(clock.estimate(at: start + 1000) == nil)
  }

  @Test(arguments: [
    ("OOM command not allowed when used memory > 'maxmemory'.", "Redis has no memory left"),
    ("MISCONF Errors writing to the AOF file: No space left on device", "Redis cannot write to its disk"),
    ("NOREPLICAS Not enough good replicas to write.", "Redis has too few replicas"),
    ("NOPERM this user has no permissions to run the 'hsetnx' command", nil),
  ])
  func `a server that takes no changes is accepted, with the reason`(_ error: String, _ reason: String?)
    throws
  {
    let settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    var handshake = try RedisHandshake(settings, for: .records)
    var facts = RedisFacts()
    var result: RedisHandshakeResult?
    for step in handshake.steps {
      var reply = RedisValue.text("1")
      switch step {
      case .clock: reply = Self.time
      case .makeEpoch: reply = .error(error)
      default: break
      }
      facts.take(reply, to: step)
      if case .ready(let ready) = handshake.received(reply) { result = ready }
    }
    let obstacle = try #require(result).facts.obstacle
    #expect(obstacle == facts.obstacle)
    #expect((obstacle == nil) == (reason == nil))
    if let reason, let obstacle { #expect(obstacle.hasPrefix(reason), "\(obstacle)") }
  }

  @Test func `a password that cannot be had is the reason, and nothing is sent without it`() {
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.login.user = "semel"
    settings.login.readPassword = { () throws(RedisLogin.Fault) in
      throw RedisLogin.Fault(reason: "the file is gone")
    }
    #expect(throws: RedisLogin.Fault(reason: "the file is gone")) {
      _ = try RedisHandshake(settings, for: .records)
    }
  }
}
