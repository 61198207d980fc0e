import Synchronization

/// What a page of metrics tells of one connection; read from any thread.
public final class RedisCounters: Sendable {
  private let roundTripCount = Atomic<Int>(0)
  private let connectionCount = Atomic<Int>(0)
  private let isUp = Atomic<Bool>(false)
  /// Of this connection.
  public let monitor = StoreMonitor(.connecting)

  /// Commands that were written, repetitions and all.
  public var roundTrips: Int { roundTripCount.load(ordering: .relaxed) }
  /// Connections that were established; all but the first are reconnections.
  public var connections: Int { connectionCount.load(ordering: .relaxed) }
  /// Whether the connection stands at this moment.
  public var isReachable: Bool { isUp.load(ordering: .relaxed) }

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
