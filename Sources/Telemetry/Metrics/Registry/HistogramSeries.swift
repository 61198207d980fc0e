import CoreMetrics
import Synchronization

/// A histogram that any thread counts in: a timer, or a recorder that aggregates.
final class HistogramSeries: RecorderHandler, TimerHandler, @unchecked Sendable {
  private let buckets: Buckets
  /// One for each bound, and one beyond.
  private let counts: UnsafeMutablePointer<Atomic<Int>>
  private let total = Atomic<Double>(0)

  init(_ buckets: Buckets) {
    self.buckets = buckets
    counts = .allocate(capacity: buckets.bounds.count + 1)
    for index in 0...buckets.bounds.count { (counts + index).initialize(to: Atomic(0)) }
  }

  deinit {
    counts.deinitialize(count: buckets.bounds.count + 1)
    counts.deallocate()
  }

  /// Those of several threads may be read between a count and its share of the sum.
  var figures: HistogramFigures {
    HistogramFigures(
      buckets, counts: (0...buckets.bounds.count).map { counts[$0].load(ordering: .relaxed) },
      total: total.load(ordering: .relaxed))
  }

  func record(_ value: Int64) { record(Double(value)) }

  /// What is no number is ignored: the sum would never be one again.
  func record(_ value: Double) {
    guard value.isFinite else { return }
    counts[buckets.index(of: value)].wrappingAdd(1, ordering: .relaxed)
    total.add(value)
  }

  /// A clock that was set back tells of a duration below zero, which the sum cannot take.
  func recordNanoseconds(_ duration: Int64) { record(Double(max(duration, 0)) / 1000) }
}
