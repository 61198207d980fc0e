import Idempotency
import Platform
import Store
import Synchronization
import TestSupport
import Testing

/// A master that has become a replica before Semel's Sentinel names the next one.
@Suite(.timeLimit(.minutes(1)))
struct SentinelScriptTests {
  private static let refusal = "-READONLY You can't write against a read only replica.\r\n"

  /// Those of Redis 7 and of Redis 6.2, which names the script first.
  private static let scriptRefusals = [
    "-READONLY You can't write against a read only replica. script: aaaa, on @user_script:3.\r\n",
    "-ERR Error running script (call to f_aaaa): @user_script:3: -READONLY You can't write against a read only replica.\r\n",
  ]

  @Test(arguments: scriptRefusals)
  func `a claim that a demoted master refuses is granted by the next one to the same owner`(_ refusal: String)
    async throws
  {
    let (former, next) = (try ScriptedMaster(), try ScriptedMaster())
    let sentinel = try SilentSentinel(naming: former.port)
    try await RedisNode.run(.orders(by: [sentinel.port])) { node in
      try await until("the master is used") { node.store.store.counters.usable > 0 }
      former.demote { _ in refusal }
      let request = Samples.request()
      async let granted = node.store.granted(request)
      try await until("the former master has refused") { former.changes.count == 1 }
      sentinel.name(next.port)
      let claim = try await granted
      #expect(claim.owner == request.owner && claim.attempt == 1)
      // The refused copy was not run, so that nothing of it can come later.
      #expect(claim.copiedUntil == nil)
      #expect(former.changes.count == 1 && next.changes.count == 1)
      for words in former.changes + next.changes { #expect(words.contains(hexadecimal(request.owner))) }
    }
  }

  @Test func `a response that a demoted master refuses is written to the next one before its record`()
    async throws
  {
    let (former, next) = (try ScriptedMaster(), try ScriptedMaster())
    let sentinel = try SilentSentinel(naming: former.port)
    try await RedisNode.run(.orders(by: [sentinel.port])) { node in
      let claim = try await node.store.granted(Samples.request())
      former.demote { $0[0] == "SET" ? Self.refusal : Self.scriptRefusals[0] }
      // The record is remembered for far longer, so that its response has a key of its own.
      let completion = Samples.completion(retention: .seconds(600), remember: .seconds(1800))
      async let reply = node.store.complete(claim, with: completion)
      try await until("the former master has refused it") { former.changes.count == 2 }
      sentinel.name(next.port)
      #expect(try await reply.outcome == .done)
      #expect(former.changes.map { $0[0] } == ["EVALSHA", "SET"])
      #expect(next.changes.map { $0[0] } == ["SET", "EVALSHA"])
      #expect(next.changes.first?[1] == "\(node.key(of: claim.id)):r:\(hexadecimal(claim.owner))")
      #expect(node.store.store.counters.suspects == 0)
    }
  }
}

/// A master that takes every change, until it is demoted.
private final class ScriptedMaster: Sendable {
  private final class Role: Sendable {
    /// The reply to a change; `nil` while it is a master.
    let refusal = Mutex<(@Sendable ([String]) -> String)?>(nil)
  }

  private let role: Role
  private let server: ScriptedRedis

  init() throws {
    let role = Role()
    self.role = role
    server = try ScriptedRedis { words in
      let refusal = role.refusal.withLock { $0 }
      if let refusal, Self.isChange(words) { return refusal(words) }
      return switch words[0] {
      case "ROLE": ScriptedRedis.array([refusal == nil ? "master" : "slave"])
      case "SCRIPT": "$40\r\n\(String(repeating: "a", count: 40))\r\n"
      case "EVALSHA": ":\(WallClock.milliseconds())\r\n"
      case "TIME": ScriptedRedis.time()
      case "INFO": "$0\r\n\r\n"
      case "HSETNX", "PUBLISH": ":0\r\n"
      case "HGET": "$1\r\ne\r\n"
      case "SUBSCRIBE": "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
      case "PING": "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
      default: "+OK\r\n"
      }
    }
  }

  var port: Int { server.port }
  /// The changes that arrived, refused ones as well.
  var changes: [[String]] { server.commands.filter(Self.isChange) }

  /// Makes it a replica, which refuses changes so.
  func demote(_ refusal: @escaping @Sendable ([String]) -> String) {
    role.refusal.withLock { $0 = refusal }
  }

  /// Whether a command changes a record: a script with a record's key, or the write of a response.
  private static func isChange(_ words: [String]) -> Bool {
    words[0] == "SET" || words[0] == "EVALSHA" && words.count > 3 && words[2] != "0"
  }
}
