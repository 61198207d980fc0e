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

/// The series that exist, the number of their users, and the names that are taken.
struct SeriesTable {
  private struct Entry {
    let kind: SeriesKind
    let series: MetricSeries
    var users = 1
  }

  private struct Family {
    let kind: SeriesKind
    let family: MetricFamily
    var series = 0
  }

  private let maxSeries: Int
  private var entries: [SeriesID: Entry] = [:]
  /// The identity of each handler's series.
  private var places: [ObjectIdentifier: SeriesID] = [:]
  private var families: [String: Family] = [:]
  private var names = Set(MetricFamily.all.flatMap { $0.kind.sampleNames(of: $0.name) })

  init(maxSeries: Int) { self.maxSeries = maxSeries }

  /// Adds a user to a series, which may be new; `nil` if there is no room or the name is taken.
  mutating func series(_ kind: SeriesKind, _ id: SeriesID, label: String) -> MetricSeries? {
    if let entry = entries[id] {
      guard entry.kind == kind else { return nil }
      entries[id]?.users += 1
      return entry.series
    }
    guard entries.count < maxSeries, id.isShort, mayHave(kind, id.name, label: label) else { return nil }
    let series = MetricSeries(kind)
    entries[id] = Entry(kind: kind, series: series)
    places[ObjectIdentifier(series.handler)] = id
    families[id.name]?.series += 1
    return series
  }

  mutating func release(_ handler: ObjectIdentifier) {
    guard let id = places[handler], let entry = entries[id] else { return }
    entries[id]?.users -= 1
    guard entry.users == 1 else { return }
    entries[id] = nil
    places[handler] = nil
    families[id.name]?.series -= 1
    guard let family = families[id.name], family.series == 0 else { return }
    families[id.name] = nil
    names.subtract(family.family.kind.sampleNames(of: id.name))
  }

  var inOrder: [(family: MetricFamily, labels: String, series: MetricSeries)] {
    entries.sorted { $0.key < $1.key }.compactMap { id, entry in
      families[id.name].map { ($0.family, id.labels, entry.series) }
    }
  }

  /// Whether a name may have series of a kind. Reserves its sample names.
  private mutating func mayHave(_ kind: SeriesKind, _ name: String, label: String) -> Bool {
    if let family = families[name] { return family.kind == kind }
    let samples = kind.family.sampleNames(of: name)
    guard names.isDisjoint(with: samples) else { return false }
    names.formUnion(samples)
    families[name] = Family(kind: kind, family: MetricFamily(kind.family, name, label: label))
    return true
  }
}

struct SeriesID: Hashable, Comparable {
  /// The maximum length of name and labels together.
  private static let maxBytes = 1024

  let name: String
  let labels: String

  var isShort: Bool { name.utf8.count + labels.utf8.count <= Self.maxBytes }

  /// Creates the identity of a label. Dimensions with an empty value are omitted, which is the same to Prometheus.
  init(_ kind: SeriesKind, _ label: String, _ dimensions: [(String, String)]) {
    let name = label.prometheusName
    self.name = name.hasSuffix(kind.suffix) ? name : name + kind.suffix
    var labels: [(key: String, value: String)] = []
    for (dimension, value) in dimensions where !value.isEmpty {
      var key = dimension.prometheusName
      // A histogram's buckets use `le`, and no label may appear twice.
      while labels.contains(where: { $0.key == key }) || kind.family == .histogram && key == "le" {
        key += "_"
      }
      labels.append((key, value))
    }
    // Prometheus gives their order no meaning.
    labels.sort { $0.key < $1.key }
    self.labels = MetricPage.text(of: labels)
  }

  static func < (left: SeriesID, right: SeriesID) -> Bool {
    (left.name, left.labels) < (right.name, right.labels)
  }
}

extension String {
  /// A valid name of a metric or of a label: `http.server.requests` becomes `http_server_requests`. Prometheus reserves
  /// two leading underscores, and colons.
  fileprivate var prometheusName: String {
    var name = utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): byte
      case UInt8(ascii: "0")...UInt8(ascii: "9"): byte
      default: UInt8(ascii: "_")
      }
    }
    while name.starts(with: "__".utf8) { name.removeFirst() }
    if name.first.map({ $0 <= UInt8(ascii: "9") }) ?? true { name.insert(UInt8(ascii: "_"), at: 0) }
    return String(decoding: name, as: UTF8.self)
  }
}
