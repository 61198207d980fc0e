import Synchronization

/// The counters of one connection, for the metrics page. Safe to read from any thread.
public final class RedisCounters: Sendable {
  private let roundTripCount = Atomic<Int>(0)
  private let connectionCount = Atomic<Int>(0)
  private let isUp = Atomic<Bool>(false)
  /// The state of this connection.
  public let monitor = StoreMonitor(.connecting)

  /// The number of commands written, including repetitions.
  public var roundTrips: Int { roundTripCount.load(ordering: .relaxed) }
  /// The number of connections established; all but the first are reconnections.
  public var connections: Int { connectionCount.load(ordering: .relaxed) }
  /// Whether the connection is established at the moment.
  public var isReachable: Bool { isUp.load(ordering: .relaxed) }

  /// Whether the connection stands and claims may be granted over it.
  public var isUsable: Bool { isReachable && !monitor.state.isRefused }

  func countRoundTrip() { roundTripCount.wrappingAdd(1, ordering: .relaxed) }

  func connected() {
    connectionCount.wrappingAdd(1, ordering: .relaxed)
    isUp.store(true, ordering: .relaxed)
  }

  func disconnected(_ reason: String) {
    isUp.store(false, ordering: .relaxed)
    monitor.fails(reason)
  }
}
