/// The kind of metric that swift-metrics requests for a label. The first request decides for all series of the name.
enum SeriesKind {
  /// A counter of whole numbers or of fractions.
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

  /// The ending of the names of this kind on the page.
  var suffix: String {
    switch self {
    case .counter: "_total"
    case .timer: "_seconds"
    case .gauge, .recorder: ""
    }
  }
}

extension MetricFamily.Kind {
  /// The names of a family's samples, which no other family may use.
  func sampleNames(of name: String) -> [String] {
    switch self {
    case .counter, .gauge: [name]
    case .histogram: [name, name + "_bucket", name + "_sum", name + "_count"]
    }
  }
}

/// The storage of one label with its dimensions.
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
