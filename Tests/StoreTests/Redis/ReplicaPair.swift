import Idempotency
import Store
import TestSupport
import Testing

/// A master, and a replica that follows it through a relay.
struct ReplicaPair {
  let master: RedisServer
  let replica: RedisServer
  let relay: RedisRelay

  /// - Parameters:
  ///   - kind: The servers' kind; `nil` for the installed Redis.
  ///   - replicaClock: The clock of the replica, if that is not the system's.
  init(_ kind: OtherRedis? = nil, replicaClock: SteppedClock? = nil) async throws {
    master = try await RedisServer(
      program: kind?.program, arguments: ["--repl-diskless-sync-delay", "0"])
    relay = try await RedisRelay(to: master.port)
    // The second option is for its own replicas.
    replica = try await RedisServer(
      program: kind?.program,
      arguments: ["--replicaof", "127.0.0.1", "\(relay.port)", "--repl-diskless-sync-delay", "0"],
      clock: replicaClock)
    try await until("the replica follows") { [self] in try isFollowed }
  }

  /// Whether the replica has taken over the master's data and receives its changes.
  ///
  /// The master counts it as online before it has read the data, from when on it confirms changes.
  var isFollowed: Bool {
    get throws { try master.isFollowed(by: replica) }
  }

  /// The settings of a store whose changes count once the replica has them.
  func settings(timeout: Milliseconds = .seconds(10)) -> RedisEndpointSettings {
    var settings = RedisEndpointSettings.on(master, timeout: timeout)
    settings.demand = ReplicaDemand(replicas: 1)
    return settings
  }

  /// The settings of a store on a node's records that demands no copies.
  func carefree(_ node: RedisNode) -> RedisEndpointSettings {
    var settings = node.settings
    settings.demand = nil
    return settings
  }

  /// Lets the replica follow again after the relay has lost what the master sent. It connects within about a second.
  func restore() {
    relay.set(.pass)
    relay.cutAll()
  }

  func close() async { await relay.close() }
}

extension RedisNode {
  /// The key of a record.
  func key(of id: RecordID) -> String { "\(settings.namespace):{\(id.text)}" }

  /// Expects that a claim is refused because the replica is missing.
  func expectRefusal(of request: ClaimRequest) async throws {
    let error = await #expect(throws: StoreError.self) { try await store.claim(request) }
    guard case .refused(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
    #expect(reason.contains("fewer than 1 replica of Redis"), "\(reason)")
  }
}

extension RedisServer {
  /// Whether a replica has taken over this master's data and receives its changes.
  func isFollowed(by replica: RedisServer) throws -> Bool {
    try replica.command(["INFO", "replication"])?.contains("master_link_status:up") == true
      && command(["INFO", "replication"])?.contains("state=online") == true
  }

  /// The text of a claim's record; empty if there is none.
  func text(of claim: Claim, _ node: RedisNode) throws -> String {
    try command(["GET", node.key(of: claim.id)]) ?? ""
  }

  /// The number of times that it has run a command.
  func calls(of name: String) throws -> Int {
    let lines = try command(["INFO", "commandstats"])?.split(whereSeparator: \.isNewline) ?? []
    let prefix = "cmdstat_\(name):calls="
    let line = lines.first { $0.hasPrefix(prefix) }
    return line.flatMap { Int($0.dropFirst(prefix.count).prefix(while: \.isNumber)) } ?? 0
  }

  /// Whether it has a command.
  func knows(_ name: String) throws -> Bool {
    try command(["COMMAND", "INFO", name])?.contains(name) == true
  }

  /// The number of scripts that it has run.
  var scriptCount: Int { get throws { try calls(of: "evalsha") } }
}
