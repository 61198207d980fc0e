import CoreMetrics
import Synchronization

/// What is told through swift-metrics, as a part of the metrics page: what Semel counts once a connection or more
/// rarely, and what libraries count.
///
/// A label stands on the page under a name that Prometheus takes. The same label with the same dimensions, in whatever
/// order, is the same handler. It stays until each of those who asked for it has destroyed it.
///
/// What is kept is bounded, so that a library which labels by path cannot eat memory. What comes beyond gets a handler
/// that does nothing, and is counted in `semel_metric_series_dropped_total`. So is a name that is taken: by a family of
/// Semel's own, or by another kind that came first.
public final class MetricRegistry: Sendable {
  private struct State {
    var own: [MetricFamily: CounterSeries] = [:]
    var table: SeriesTable
    var dropped = 0
  }

  private let state: Mutex<State>

  /// - Parameters:
  ///   - mostSeries: how many series are kept besides Semel's own. Libraries that label by closed lists need some
  ///     dozens.
  public init(mostSeries: Int = 1000) { state = Mutex(State(table: SeriesTable(mostSeries: mostSeries))) }

  /// A counter of Semel's own: on the page from now on, under its family's name and help.
  public func counter(_ family: MetricFamily) -> Counter {
    precondition(family.kind == .counter, "MetricRegistry: \(family.name) is no counter")
    let series = state.withLock { state in
      let series = state.own[family] ?? CounterSeries()
      state.own[family] = series
      return series
    }
    return Counter(label: family.name, dimensions: [], handler: series, factory: self)
  }

  /// The series of a label, which one more user asks for; `nil` where it is not kept.
  func series(_ kind: SeriesKind, _ label: String, _ dimensions: [(String, String)]) -> MetricSeries? {
    let id = SeriesID(kind, label, dimensions)
    return state.withLock { state in
      let series = state.table.series(kind, id, label: label)
      if series == nil { state.dropped += 1 }
      return series
    }
  }

  /// One user of a handler has let go.
  func release(_ handler: AnyObject) { state.withLock { $0.table.release(ObjectIdentifier(handler)) } }

  func add(to page: inout MetricPage) {
    let (own, told, dropped) = state.withLock { ($0.own, $0.table.inOrder, $0.dropped) }
    for (family, series) in own { page.add(MetricFigure(family, series.value)) }
    for (family, labels, series) in told { page.add(family, series, labels: labels) }
    page.add(.seriesDropped, dropped)
  }
}
