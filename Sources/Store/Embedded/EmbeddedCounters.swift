import Synchronization

/// Figures of the embedded store for the metrics page, from any thread.
final class EmbeddedCounters: Sendable {
  let commits = Atomic<Int>(0)
  let swept = Atomic<Int>(0)
  let sweepFailures = Atomic<Int>(0)
  let indexRepairs = Atomic<Int>(0)
  let databaseBytes = Atomic<Int>(0)
  let logBytes = Atomic<Int>(0)
  let freeBytes = Atomic<Int>(0)
  let isExpiryHeld = Atomic<Bool>(false)
  let isAvailable = Atomic<Bool>(true)
}

/// The figures of the embedded store.
public struct EmbeddedFigures: Equatable, Sendable {
  /// The lengths of the database and of SQLite's log, and what of the database is free.
  public let databaseBytes: Int
  public let logBytes: Int
  public let freeBytes: Int
  /// Steps of the sweeper that failed, and indexes that were made anew.
  public let sweepFailures: Int
  public let indexRepairs: Int
  /// Whether expiry is held back because the clock is in doubt.
  public let isExpiryHeld: Bool
  /// False while the database is not where it was opened.
  public let isAvailable: Bool

  init(_ counters: EmbeddedCounters) {
    databaseBytes = counters.databaseBytes.load(ordering: .relaxed)
    logBytes = counters.logBytes.load(ordering: .relaxed)
    freeBytes = counters.freeBytes.load(ordering: .relaxed)
    sweepFailures = counters.sweepFailures.load(ordering: .relaxed)
    indexRepairs = counters.indexRepairs.load(ordering: .relaxed)
    isExpiryHeld = counters.isExpiryHeld.load(ordering: .relaxed)
    isAvailable = counters.isAvailable.load(ordering: .relaxed)
  }
}
