import CoreMetrics
import Synchronization

/// The kind of metric of a label. The first request decides for all series of the name.
enum SeriesKind {
  case counter
  /// A meter, or a recorder that does not aggregate.
  case gauge
  case recorder, timer

  var family: MetricFamily.Kind {
    switch self {
    case .counter: .counter
    case .gauge: .gauge
    case .recorder, .timer: .histogram
    }
  }

  var suffix: String {
    switch self {
    case .counter: "_total"
    case .timer: "_seconds"
    case .gauge, .recorder: ""
    }
  }
}

extension MetricFamily.Kind {
  func sampleNames(of name: String) -> [String] {
    switch self {
    case .counter, .gauge: [name]
    case .histogram: [name, name + "_bucket", name + "_sum", name + "_count"]
    }
  }
}

enum MetricSeries {
  case counter(CounterSeries)
  case gauge(GaugeSeries)
  case histogram(HistogramSeries)

  init(_ kind: SeriesKind) {
    switch kind {
    case .counter: self = .counter(CounterSeries())
    case .gauge: self = .gauge(GaugeSeries())
    case .recorder: self = .histogram(HistogramSeries(.values))
    case .timer: self = .histogram(HistogramSeries(.durations))
    }
  }

  var handler: AnyObject {
    switch self {
    case .counter(let series): series
    case .gauge(let series): series
    case .histogram(let series): series
    }
  }
}

extension MetricPage {
  mutating func add(_ family: MetricFamily, _ series: MetricSeries, labels: String) {
    switch series {
    case .counter(let counter): add(family, counter.value, labels: labels)
    case .gauge(let gauge): add(family, gauge.value, labels: labels)
    case .histogram(let histogram): add(family, histogram.figures, labels: labels)
    }
  }
}

/// A counter that any thread raises, by whole numbers or by fractions.
final class CounterSeries: CounterHandler, FloatingPointCounterHandler {
  /// Separate from the fractions, so that an increment is one atomic addition.
  private let whole = Atomic<Int64>(0)
  private let fractions = Atomic<Double>(0)

  var value: Double { Double(whole.load(ordering: .relaxed)) + fractions.load(ordering: .relaxed) }

  /// A counter only grows: amounts below zero and those that are not finite are ignored.
  func increment(by amount: Int64) {
    guard amount > 0 else { return }
    whole.wrappingAdd(amount, ordering: .relaxed)
  }

  func increment(by amount: Double) {
    guard amount > 0, amount.isFinite else { return }
    fractions.add(amount)
  }

  func reset() {
    whole.store(0, ordering: .relaxed)
    fractions.store(0, ordering: .relaxed)
  }
}

extension Atomic where Value == Double {
  func add(_ amount: Double) {
    var current = load(ordering: .relaxed)
    while true {
      let (isDone, found) = weakCompareExchange(
        expected: current, desired: current + amount, ordering: .relaxed)
      if isDone { return }
      current = found
    }
  }
}

/// A number that any thread sets: a meter, or a recorder that does not aggregate.
final class GaugeSeries: MeterHandler, RecorderHandler {
  private let current = Atomic<Double>(0)

  var value: Double { current.load(ordering: .relaxed) }

  func set(_ value: Int64) { set(Double(value)) }
  func set(_ value: Double) { current.store(value, ordering: .relaxed) }

  /// An amount that is not finite would stay for ever.
  func increment(by amount: Double) {
    guard amount.isFinite else { return }
    current.add(amount)
  }

  func decrement(by amount: Double) { increment(by: -amount) }

  func record(_ value: Int64) { set(value) }
  func record(_ value: Double) { set(value) }
}

/// A histogram that any thread adds to: a timer, or a recorder that aggregates.
final class HistogramSeries: RecorderHandler, TimerHandler, @unchecked Sendable {
  private let buckets: Buckets
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

  /// While other threads record, a value may be in the counts and not yet in the sum.
  var figures: HistogramFigures {
    HistogramFigures(
      buckets, counts: (0...buckets.bounds.count).map { counts[$0].load(ordering: .relaxed) },
      total: total.load(ordering: .relaxed))
  }

  func record(_ value: Int64) { record(Double(value)) }

  /// One that is not finite would stay in the sum for ever.
  func record(_ value: Double) {
    guard value.isFinite else { return }
    counts[buckets.index(of: value)].wrappingAdd(1, ordering: .relaxed)
    total.add(value)
  }

  /// A negative duration, from a clock that was set back, counts as zero.
  func recordNanoseconds(_ duration: Int64) { record(Double(max(duration, 0)) / 1000) }
}
