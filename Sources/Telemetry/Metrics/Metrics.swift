import Platform
import Synchronization

/// All metrics of the process: the rows that event loops count in, the swift-metrics registry, and other sources.
public final class Metrics: Sendable {
  /// The maximum number of distinct route names over all reloads. Routes beyond it share the last row.
  private static let maxRoutes = 4096

  private struct State {
    var routes: [String] = []
    var sources: [@Sendable () async -> [MetricFigure]] = []
  }

  /// The rows of each event loop.
  public let loops: [LoopMetrics]
  /// The counters and gauges that all event loops share.
  public let counters: Counters
  /// The metrics that are recorded through swift-metrics.
  public let registry: MetricRegistry
  private let state = Mutex(State())
  private let start = WallClock.milliseconds()

  /// Creates the metrics of a process with this number of event loops.
  public init(loops: Int, registry: MetricRegistry = MetricRegistry()) {
    self.loops = (0..<loops).map { _ in LoopMetrics(maxRoutes: Self.maxRoutes) }
    self.registry = registry
    counters = Counters(registry: registry)
    _ = number(ofRoute: "")
  }

  /// Returns the number of a route's metrics, the same for the same name, before event loops see a request of it.
  public func number(ofRoute name: String) -> Int {
    state.withLock { state in
      if let number = state.routes.firstIndex(of: name) { return number }
      guard state.routes.count < Self.maxRoutes else { return Self.maxRoutes - 1 }
      for loop in loops { loop.addRow(state.routes.count) }
      state.routes.append(name)
      return state.routes.count - 1
    }
  }

  /// Returns the number of a route that was announced, or else 0.
  public func knownNumber(ofRoute name: String) -> Int {
    state.withLock { $0.routes.firstIndex(of: name) ?? 0 }
  }

  var routeNames: [String] { state.withLock { $0.routes } }

  /// The sum of a family's present numbers, over all their labels, of counters, process and sources; `nil` without any.
  public func total(of family: MetricFamily) async -> Double? {
    let sources = state.withLock { $0.sources }
    var figures = counters.figures
    for source in sources { figures += await source() }
    let values = figures.filter { $0.family == family }.map(\.value)
    return values.isEmpty ? nil : values.reduce(0, +)
  }

  /// The number of claims whose fate is not known, over all event loops.
  public var claimsLost: Int { loops.reduce(0) { $0 + $1.own[LoopLayout.count(.claimsLost)] } }

  /// Adds a source of numbers, which is read each time a page is made.
  public func source(_ figures: @escaping @Sendable () async -> [MetricFigure]) {
    state.withLock { $0.sources.append(figures) }
  }

  /// Returns the page in Prometheus's text format.
  public func page() async -> String {
    let (routes, sources) = state.withLock { ($0.routes, $0.sources) }
    var page = MetricPage()
    addRoutes(routes, to: &page)
    addLoops(to: &page)
    registry.add(to: &page)
    for figure in counters.figures + ProcessFigures.read(start: start) { page.add(figure) }
    for source in sources {
      for figure in await source() { page.add(figure) }
    }
    return page.text
  }
}

/// One number of a source.
public struct MetricFigure: Sendable {
  let family: MetricFamily
  let labels: [(key: String, value: String)]
  let value: Double

  public init(_ family: MetricFamily, _ value: Double, _ labels: (key: String, value: String)...) {
    self.family = family
    self.labels = labels
    self.value = value
  }

  public init(_ family: MetricFamily, _ value: Int, _ labels: (key: String, value: String)...) {
    self.family = family
    self.labels = labels
    self.value = Double(value)
  }
}
