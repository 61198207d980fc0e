import Idempotency
import Testing

@testable import Store

/// The pure parts of a connection's life.
@Suite struct RedisGreetingTests {
  @Test func `a new connection logs in, loads every script and looks around`() throws {
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.user = "semel"
    settings.password = "word"
    settings.database = 2
    var handshake = RedisHandshake(settings, carriesRecords: true)
    #expect(handshake.steps[0].command == ["AUTH", "semel", "word"])
    #expect(handshake.steps[1].command == ["SELECT", "2"])
    var action = RedisHandshake.Action.wait
    for step in handshake.steps {
      #expect(action == .wait)
      action =
        switch step {
        case .name: handshake.received(.error("NOPERM no"))
        case .load(let script): handshake.received(.text("digest \(script.rawValue)"))
        case .clock: handshake.received(.integer(77))
        case .memory: handshake.received(.text("# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"))
        case .persistence: handshake.received(.text("aof_enabled:1\r\n"))
        case .authenticate, .select: handshake.received(.text("OK"))
        }
    }
    guard case .ready(let greeting) = action else { throw Unexpected(what: "\(action)") }
    #expect(greeting.now == StoreInstant(milliseconds: 77))
    #expect(greeting.digests == RedisScript.allCases.map { "digest \($0.rawValue)" })
    #expect(greeting.doubts.isEmpty)
  }

  @Test func `a refused login ends the connection with what to do`() {
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.password = "wrong"
    var handshake = RedisHandshake(settings, carriesRecords: false)
    #expect(handshake.steps.map(\.command) == [["AUTH", "wrong"], ["CLIENT", "SETNAME", "semel"]])
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
    ("ERR something new", "Redis refused the command (ERR something new)"),
  ])
  func `an error of Redis' says what to do`(_ text: String, _ advice: String) {
    guard case .unavailable(let told) = RedisRefusal.error(text) else {
      Issue.record("not unavailable")
      return
    }
    #expect(told.contains(advice))
    #expect(told.contains(text))
  }

  @Test func `the estimate of the store's clock is never ahead`() {
    var clock = RedisClock()
    let start = BootInstant(nanoseconds: 1_000_000_000)
    #expect(clock.estimate(at: start) == nil)
    clock.told(StoreInstant(milliseconds: 5000), at: start)
    #expect(clock.estimate(at: start) == StoreInstant(milliseconds: 5000))
    #expect(clock.estimate(at: start + 1) == StoreInstant(milliseconds: 5000))
    #expect(clock.estimate(at: start + 1000) == StoreInstant(milliseconds: 5999))
    // A store whose clock was set back is believed at once.
    clock.told(StoreInstant(milliseconds: 100), at: start + 1000)
    #expect(clock.estimate(at: start + 1000) == StoreInstant(milliseconds: 100))
    clock.reset()
    #expect(clock.estimate(at: start + 1000) == nil)
  }

  @Test func `the pause before connecting again doubles, up to two seconds`() {
    var backoff = RedisBackoff()
    #expect(
      (0..<9).map { _ in backoff.failed(fraction: 0.999_999_9).count } == [
        19, 39, 79, 159, 319, 639, 1279, 1999, 1999,
      ])
    #expect(backoff.failed(fraction: 0) == 1)
    backoff.succeeded()
    #expect(backoff.failed(fraction: 0.5) == 10)
  }
}
