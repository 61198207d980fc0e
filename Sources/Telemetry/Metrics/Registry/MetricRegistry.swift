import CoreMetrics
import Synchronization

/// The metrics that are recorded through swift-metrics: Semel's own rare counters, and the metrics of libraries.
///
/// A label appears under a name that Prometheus accepts, until each of its users has destroyed it. The same label and
/// dimensions are the same handler. A series beyond the limit, or of a name that is taken, gets a handler that does
/// nothing, and is counted in `semel_metric_series_dropped_total`.
public final class MetricRegistry: Sendable {
  private struct State {
    var own: [MetricFamily: CounterSeries] = [:]
    var table: SeriesTable
    var dropped = 0
  }

  private let state: Mutex<State>

  /// - Parameter maxSeries: The maximum number of series besides Semel's own.
  public init(maxSeries: Int = 1000) { state = Mutex(State(table: SeriesTable(maxSeries: maxSeries))) }

  /// Returns a counter of Semel's own, which is on the page from now on under its family's name and help text.
  public func counter(_ family: MetricFamily) -> Counter {
    precondition(family.kind == .counter, "MetricRegistry: \(family.name) is no counter")
    let series = state.withLock { state in
      let series = state.own[family] ?? CounterSeries()
      state.own[family] = series
      return series
    }
    return Counter(label: family.name, dimensions: [], handler: series, factory: self)
  }

  /// Adds a user to the series of a label; `nil` if it is not kept.
  func series(_ kind: SeriesKind, _ label: String, _ dimensions: [(String, String)]) -> MetricSeries? {
    let id = SeriesID(kind, label, dimensions)
    return state.withLock { state in
      let series = state.table.series(kind, id, label: label)
      if series == nil { state.dropped += 1 }
      return series
    }
  }

  func release(_ handler: AnyObject) { state.withLock { $0.table.release(ObjectIdentifier(handler)) } }

  func add(to page: inout MetricPage) {
    let (own, series, dropped) = state.withLock { ($0.own, $0.table.inOrder, $0.dropped) }
    for (family, series) in own { page.add(MetricFigure(family, series.value)) }
    for (family, labels, series) in series { page.add(family, series, labels: labels) }
    page.add(.seriesDropped, dropped)
  }
}

extension MetricRegistry: MetricsFactory {
  public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    guard case .counter(let series) = series(.counter, label, dimensions) else { return noHandler }
    return series
  }

  public func makeFloatingPointCounter(
    label: String, dimensions: [(String, String)]
  ) -> any FloatingPointCounterHandler {
    guard case .counter(let series) = series(.counter, label, dimensions) else { return noHandler }
    return series
  }

  public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    guard case .gauge(let series) = series(.gauge, label, dimensions) else { return noHandler }
    return series
  }

  public func makeRecorder(
    label: String, dimensions: [(String, String)], aggregate: Bool
  ) -> any RecorderHandler {
    switch series(aggregate ? .recorder : .gauge, label, dimensions) {
    case .gauge(let series): series
    case .histogram(let series): series
    case .counter, nil: noHandler
    }
  }

  public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    guard case .histogram(let series) = series(.timer, label, dimensions) else { return noHandler }
    return series
  }

  public func destroyCounter(_ handler: any CounterHandler) { release(handler) }
  public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { release(handler) }
  public func destroyMeter(_ handler: any MeterHandler) { release(handler) }
  public func destroyRecorder(_ handler: any RecorderHandler) { release(handler) }
  public func destroyTimer(_ handler: any TimerHandler) { release(handler) }

  private var noHandler: NOOPMetricsHandler { .instance }
}
