import Synchronization

/// The embedded store's counters and gauges, written by its threads and read by any thread.
final class EmbeddedCounters: Sendable {
  let commits = Atomic<Int>(0)
  let swept = Atomic<Int>(0)
  let sweepFailures = Atomic<Int>(0)
  let databaseBytes = Atomic<Int>(0)
  let logBytes = Atomic<Int>(0)
  let freeBytes = Atomic<Int>(0)
  let losses = Atomic<Int>(0)
  let isAvailable = Atomic<Bool>(true)
  let hasOpenIndex = Atomic<Bool>(false)
}

/// The embedded store's numbers for the metrics page.
public struct EmbeddedFigures: Equatable, Sendable {
  /// The length of the database file, in bytes.
  public let databaseBytes: Int
  /// The length of SQLite's log, in bytes.
  public let logBytes: Int
  /// The free space within the database, in bytes.
  public let freeBytes: Int
  /// The number of sweep steps that failed.
  public let sweepFailures: Int
  /// The number of starts of this process that have found a loss (`FileLoss`).
  public let losses: Int
  /// Whether the database is still where it was opened.
  public let isAvailable: Bool
  /// Whether all open records are known, so that nobody has to walk for them.
  public let hasOpenIndex: Bool

  init(_ counters: EmbeddedCounters) {
    databaseBytes = counters.databaseBytes.load(ordering: .relaxed)
    logBytes = counters.logBytes.load(ordering: .relaxed)
    freeBytes = counters.freeBytes.load(ordering: .relaxed)
    sweepFailures = counters.sweepFailures.load(ordering: .relaxed)
    losses = counters.losses.load(ordering: .relaxed)
    isAvailable = counters.isAvailable.load(ordering: .relaxed)
    hasOpenIndex = counters.hasOpenIndex.load(ordering: .relaxed)
  }
}
