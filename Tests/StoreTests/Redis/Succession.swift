import Idempotency
import Store
import TestSupport
import Wire

/// A master, the replica that takes over from it, and a replica of that one, so that either master may be demanded to
/// have one. Nodes reach the present master through a relay.
struct Succession {
  let pair: ReplicaPair
  let other: RedisServer
  let front: RedisRelay

  /// - Parameter heirClock: The clock of the replica that takes over, if that is not the system's.
  init(heirClock: SteppedClock? = nil) async throws {
    pair = try await ReplicaPair(replicaClock: heirClock)
    other = try await RedisServer(arguments: ["--replicaof", "127.0.0.1", "\(pair.replica.port)"])
    front = try await RedisRelay(to: pair.master.port)
    try await until("the other one follows") { [self] in try pair.replica.isFollowed(by: other) }
  }

  /// The settings of a store whose changes count once one replica has them.
  func settings(grace: Milliseconds) -> RedisEndpointSettings {
    var settings = pair.settings(timeout: .seconds(20))
    settings.address = .tcp(host: "127.0.0.1", port: front.port)
    settings.failoverGrace = grace
    return settings
  }

  /// Makes the replica a master of its own, which the other one follows.
  func promote() async throws {
    try pair.replica.command(["REPLICAOF", "NO", "ONE"])
    // Those that follow a promoted server connect again.
    try await until("the other one follows the new master") {
      try pair.replica.isFollowed(by: other)
        && pair.replica.command(["INFO", "replication"])?.contains("role:master") == true
    }
  }

  /// Kills the master, and leads the nodes to the replica.
  func succeed() async throws {
    pair.master.kill()
    try await promote()
    front.lead(to: pair.replica.port)
  }

  func close() async {
    await front.close()
    await pair.close()
  }
}
