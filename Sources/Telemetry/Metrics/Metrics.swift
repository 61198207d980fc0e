import Synchronization

/// All figures of the process: the rows that event loops count in, what is told through swift-metrics, and sources that
/// are asked when a page is made.
public final class Metrics: Sendable {
  /// Routes of different names in the life of a process, over all reloads; those beyond share the last row.
  private static let mostRoutes = 4096

  private struct State {
    /// Route names by their numbers; 0 is for requests that meet no route.
    var routes: [String] = []
    var sources: [@Sendable () async -> [MetricFigure]] = []
  }

  /// One for each event loop.
  public let loops: [LoopMetrics]
  public let counters: Counters
  /// What is told through swift-metrics.
  public let registry: MetricRegistry
  private let state = Mutex(State())

  public init(loops: Int, registry: MetricRegistry = MetricRegistry()) {
    self.loops = (0..<loops).map { _ in LoopMetrics(mostRoutes: Self.mostRoutes) }
    self.registry = registry
    counters = Counters(registry: registry)
    _ = number(ofRoute: "")
  }

  /// The number under which a route's figures are kept: always the same for the same name. Must be asked for before
  /// the event loops hear of the route.
  public func number(ofRoute name: String) -> Int {
    state.withLock { state in
      if let number = state.routes.firstIndex(of: name) { return number }
      guard state.routes.count < Self.mostRoutes else { return Self.mostRoutes - 1 }
      for loop in loops { loop.addRow(state.routes.count) }
      state.routes.append(name)
      return state.routes.count - 1
    }
  }

  /// Adds what knows its own figures; it is asked each time a page is made.
  public func source(_ figures: @escaping @Sendable () async -> [MetricFigure]) {
    state.withLock { $0.sources.append(figures) }
  }

  /// The page in Prometheus's text format.
  public func page() async -> String {
    let (routes, sources) = state.withLock { ($0.routes, $0.sources) }
    var page = MetricPage()
    addRoutes(routes, to: &page)
    addLoops(to: &page)
    registry.add(to: &page)
    for figure in counters.figures + ProcessFigures.read() { page.add(figure) }
    for source in sources {
      for figure in await source() { page.add(figure) }
    }
    return page.text
  }
}

/// One number of a source's.
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
