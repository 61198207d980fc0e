/// What a label is asked for as. The first decides for all that have its name.
enum SeriesKind {
  /// With or without fractions.
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

  /// How names of this kind end on the page.
  var suffix: String {
    switch self {
    case .counter: "_total"
    case .timer: "_seconds"
    case .gauge, .recorder: ""
    }
  }
}

extension MetricFamily.Kind {
  /// The names under which a family's samples stand, and which no other family may have.
  func sampleNames(of name: String) -> [String] {
    switch self {
    case .counter, .gauge: [name]
    case .histogram: [name, name + "_bucket", name + "_sum", name + "_count"]
    }
  }
}

/// One label with its dimensions, as it is counted.
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
