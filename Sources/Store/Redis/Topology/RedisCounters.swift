import Idempotency
import Logging
import Platform
import Synchronization
import TLS
import Wire

/// The counters of one event loop's connections, for the metrics page. Safe to read from any thread.
public final class RedisCounters: Sendable {
  private let roundTripCount = Atomic<Int>(0)
  private let connectionCount = Atomic<Int>(0)
  private let reconnectionCount = Atomic<Int>(0)
  private let upCount = Atomic<Int>(0)
  private let redirectCounts = Mutex<[ClusterRefusal.Kind: Int]>([:])
  private let moveCount = Atomic<Int>(0)
  private let suspectCount = Atomic<Int>(0)
  private let nodeFigures = Mutex<[String: RedisNodeFigures]>([:])
  private let topologyText = Mutex<String?>(nil)
  let didWait: @Sendable (Int64) -> Void
  /// The state of these connections together.
  public let monitor = StoreMonitor(.connecting)

  init(didWait: @escaping @Sendable (Int64) -> Void = { _ in }) { self.didWait = didWait }

  /// The number of commands written, including repetitions.
  public var roundTrips: Int { roundTripCount.load(ordering: .relaxed) }
  /// The number of connections that replaced an earlier one to the same server or its successor.
  public var reconnections: Int { reconnectionCount.load(ordering: .relaxed) }
  /// The number of connections established.
  public var connections: Int { connectionCount.load(ordering: .relaxed) }
  /// The number of commands that a cluster's node refused, by the reason.
  public var redirects: [(kind: String, count: Int)] {
    let counts = redirectCounts.withLock { $0 }
    return ClusterRefusal.Kind.allCases.map { ($0.rawValue, counts[$0] ?? 0) }
  }
  /// The number of times that another server took over from a master.
  public var failovers: Int { moveCount.load(ordering: .relaxed) }

  /// The figures of the servers, in the order of their names.
  public var nodes: [RedisNodeFigures] { nodeFigures.withLock { $0.values.sorted { $0.name < $1.name } } }

  /// The servers that hold the records now, for a person; `nil` while none is known.
  public var topology: String? { topologyText.withLock { $0 } }

  func node(_ name: String) -> RedisNodeFigures {
    nodeFigures.withLock { nodes in
      if let known = nodes[name] { return known }
      let made = RedisNodeFigures(name: name)
      nodes[name] = made
      return made
    }
  }

  /// Drops the figures of all other servers.
  func keepNodes(_ names: Set<String>) {
    nodeFigures.withLock { nodes in nodes = nodes.filter { names.contains($0.key) } }
  }

  func publish(topology: String?) { topologyText.withLock { $0 = topology } }

  func countRoundTrip() { roundTripCount.wrappingAdd(1, ordering: .relaxed) }

  /// The number of connections that are established at the moment; 0 if claims are refused.
  public var usable: Int { monitor.state.isRefused ? 0 : upCount.load(ordering: .relaxed) }

  func connected(isAgain: Bool) {
    if isAgain { reconnectionCount.wrappingAdd(1, ordering: .relaxed) }
    connectionCount.wrappingAdd(1, ordering: .relaxed)
    upCount.wrappingAdd(1, ordering: .relaxed)
  }

  func disconnected() {
    let left = upCount.wrappingSubtract(1, ordering: .relaxed).newValue
    invariant(left >= 0, "a connection to Redis ends twice")
  }

  func redirected(_ kind: ClusterRefusal.Kind) { redirectCounts.withLock { $0[kind, default: 0] += 1 } }

  /// The number of live claims that Redis no longer had when their owners renewed or completed them.
  public var suspects: Int { suspectCount.load(ordering: .relaxed) }

  func suspected() { suspectCount.wrappingAdd(1, ordering: .relaxed) }

  func failedOver() { moveCount.wrappingAdd(1, ordering: .relaxed) }
}

/// The replies of one server to one event loop's connections. Safe to read from any thread.
public final class RedisNodeFigures: Sendable {
  /// The server's address.
  public let name: String
  private let replyCount = Atomic<Int>(0)
  private let nanosecondCount = Atomic<Int64>(0)

  init(name: String) { self.name = name }

  /// The number of replies to scripts.
  public var replies: Int { replyCount.load(ordering: .relaxed) }
  /// The time that they took together, from the command's writing to the reading of the reply.
  public var seconds: Double { Double(nanosecondCount.load(ordering: .relaxed)) / 1e9 }

  /// Takes a reply. Called on one loop, hence without atomic additions.
  func replied(after nanoseconds: Int64) {
    replyCount.store(replyCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    nanosecondCount.store(nanosecondCount.load(ordering: .relaxed) &+ nanoseconds, ordering: .relaxed)
  }
}

/// The log entries about Redis that several connections would repeat. Safe to use from any thread.
final class RedisWarnings: Sendable {
  private let logger: Logger
  private let pace = Mutex(WarningPace())

  init(logger: Logger) { self.logger = logger }

  func warn(_ doubt: String) {
    guard pace.withLock({ $0.isDue(doubt, at: .now) }) else { return }
    logger.warning("Redis may lose records, and a lost record lets a retry run twice: \(doubt)")
  }

  func refuse(_ reason: String) {
    if pace.withLock({ $0.isDue(reason, at: .now) }) { logRefusal(reason) }
  }

  func refuseUntilAccepted(_ reason: String) {
    if pace.withLock({ $0.begins(reason, at: .now) }) { logRefusal(reason) }
  }

  private func logRefusal(_ reason: String) {
    logger.error("Redis is refused, and no protected request runs: \(reason)")
  }

  func accept(after reason: String) {
    guard pace.withLock({ $0.ends(reason) }) else { return }
    logger.notice("Redis is accepted again", metadata: ["after": "\(reason)"])
  }
}

/// The pace of the log entries about Redis: a text is due again after an interval. Pure.
struct WarningPace {
  /// The minimum time between two equal entries, of several loops.
  static let interval = Milliseconds.seconds(60)

  /// The time of the last entry with each text.
  private var loggedAt: [String: BootInstant] = [:]
  private var standing: Set<String> = []

  var count: Int { loggedAt.count }

  /// Returns whether an entry is due, and notes it as logged. The text has nothing that changes between inspections.
  mutating func isDue(_ text: String, at now: BootInstant) -> Bool {
    if let last = loggedAt[text], now - last < Self.interval { return false }
    loggedAt = loggedAt.filter { now - $0.value < Self.interval }
    loggedAt[text] = now
    return true
  }

  mutating func begins(_ reason: String, at now: BootInstant) -> Bool {
    standing.insert(reason)
    return isDue(reason, at: now)
  }

  /// Notes the end of a reason, whose next beginning is due at once. Returns whether it stood until now.
  mutating func ends(_ reason: String) -> Bool {
    loggedAt[reason] = nil
    return standing.remove(reason) != nil
  }
}

/// The credentials and the TLS client for one kind of server. Each new connection takes them as they are then.
public struct RedisLogin: Sendable {
  /// The user; `nil` for Redis' default user.
  public var user: String?
  /// The password; `nil` if the server requires none.
  public var password: Secret?
  /// Reads the file with the password, which may have changed, for a new connection; `nil` if no file is configured.
  public var readPassword: (@Sendable () throws(Fault) -> Secret)?
  /// The TLS client; `nil` for connections in clear.
  public var tls: ClientTLS?

  public init() {}

  /// The reason why a configured password is not available now.
  public struct Fault: Error, Equatable {
    public let reason: String

    public init(reason: String) { self.reason = reason }
  }

  func currentPassword() throws(Fault) -> Secret? {
    guard let readPassword else { return password }
    return try readPassword()
  }
}

/// The addresses and logins of Redis' servers, and the names of Semel's keys in them.
public struct RedisEndpointSettings: Sendable {
  /// The servers and their roles.
  public enum Topology: Sendable {
    case standalone
    /// The Sentinels' addresses, the name under which they know the master, and the login at them.
    case sentinel([ServerAddress], master: String, login: RedisLogin)
    /// Some nodes of a cluster, which name all others.
    case cluster([ServerAddress])

    var isStandalone: Bool { if case .standalone = self { true } else { false } }
    var isCluster: Bool { if case .cluster = self { true } else { false } }
  }

  /// The address of a standalone server; of another topology the first address that is configured.
  public var address: ServerAddress
  public var topology = Topology.standalone
  /// The login at the servers that hold the records.
  public var login = RedisLogin()
  /// The number of the database, for `SELECT`.
  public var database = 0
  /// The time-out of one call as a whole, including the wait for a connection and repetitions.
  public var timeout: Milliseconds = 500
  /// The time after which a connection for large responses is given up if no byte has passed; at least `timeout`.
  var maxSilence: Milliseconds = .seconds(5)
  /// The first part of every key and channel.
  public var namespace = "semel"
  /// Whether a Redis that may evict or lose records is refused. If not, a warning is logged.
  public var requireDurable = false
  /// The copies of a change that must exist before it counts; `nil` if Redis' own is enough.
  public var demand: ReplicaDemand?
  /// The time for which new claims wait at a server that has taken over, if replicas are demanded.
  public var failoverGrace: Milliseconds = 2000
  /// Whether no claim is granted before `RedisStore.admit`.
  public var awaitsAdmission = false
  /// The pause between two inspections, which detect settings of a running Redis that let it lose records or keep this
  /// node from publishing.
  public var inspectionInterval: Milliseconds = .seconds(3)
  /// The time for which the index of open records is left alone after Redis has forbidden one of its commands.
  var indexPause: Milliseconds = .seconds(60)

  public init(address: ServerAddress) { self.address = address }
}
