import CoreMetrics
import Synchronization

/// A histogram that any thread adds to: a timer, or a recorder that aggregates. The memory behind its pointer holds
/// atomics, hence `@unchecked Sendable`.
final class HistogramSeries: RecorderHandler, TimerHandler, @unchecked Sendable {
  private let buckets: Buckets
  /// The number of values per bucket: one element per bound, and one for the values beyond.
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

  /// The counts and the sum. While other threads record, a value may be in the counts and not yet in the sum.
  var figures: HistogramFigures {
    HistogramFigures(
      buckets, counts: (0...buckets.bounds.count).map { counts[$0].load(ordering: .relaxed) },
      total: total.load(ordering: .relaxed))
  }

  func record(_ value: Int64) { record(Double(value)) }

  /// Adds a value. One that is not finite is ignored, because the sum would never become finite again.
  func record(_ value: Double) {
    guard value.isFinite else { return }
    counts[buckets.index(of: value)].wrappingAdd(1, ordering: .relaxed)
    total.add(value)
  }

  /// Adds a duration. A negative one, from a clock that was set back, counts as zero, because the sum must not shrink.
  func recordNanoseconds(_ duration: Int64) { record(Double(max(duration, 0)) / 1000) }
}
