import Foundation
import SimRedis
import TestSupport
import Testing

@testable import Store

/// The simulated server beside real ones.
@Suite(.timeLimit(.minutes(30)))
struct DifferentialTests {
  /// The number of commands; `SEMEL_SIM_COMMANDS` makes it more.
  private static let count = number("SEMEL_SIM_COMMANDS") ?? 20_000
  private static let seed = number("SEMEL_SIM_SEED").map { UInt64($0) } ?? .random(in: 0...UInt64(Int.max))

  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
  }

  private static let available =
    [SimRedisVersion.redis7] + OtherRedis.available.map { $0 == .redis6 ? .redis6 : .valkey9 }

  @Test(arguments: available)
  func `random commands are replied to as by the real server`(_ version: SimRedisVersion) async throws {
    try Tool.require("redis-server")
    let program: String? =
      switch version {
      case .redis7: nil
      case .redis6: OtherRedis.redis6.program
      case .valkey9: OtherRedis.valkey9.program
      }
    let commands = RandomCommands(
      seed: Self.seed, scripts: RedisScript.allCases.map(\.source), digest: SimRedisServer.digest)
    let run = try await Differential(version, program: program, commands: commands)
    do { try run.run(Self.count) } catch { Issue.record("SEMEL_SIM_SEED=\(Self.seed): \(error)") }
  }

  @Test func `random commands to a cluster are replied to as by real nodes`() async throws {
    try Tool.require("redis-server")
    let commands = RandomCommands(seed: Self.seed, scripts: [], digest: SimRedisServer.digest)
    let run = try await ClusterDifferential(commands)
    do { try run.run(Self.count / 4) } catch { Issue.record("SEMEL_SIM_SEED=\(Self.seed): \(error)") }
  }

  @Test func `a server that replies otherwise is found out`() async throws {
    try Tool.require("redis-server")
    let commands = RandomCommands(
      seed: 1, scripts: RedisScript.allCases.map(\.source), digest: SimRedisServer.digest)
    let run = try await Differential(.redis6, program: nil, commands: commands)
    #expect(throws: Differential.Difference.self) { try run.run(2000) }
  }
}
