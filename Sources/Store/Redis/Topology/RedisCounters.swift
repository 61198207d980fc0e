import Synchronization
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
