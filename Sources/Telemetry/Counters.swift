import CoreMetrics
import Synchronization

/// The counters and gauges that all event loops share.
public final class Counters: Sendable {
  /// Counters that only grow, by one per connection or less often. They are kept as swift-metrics counters.
  public enum Name: Int, CaseIterable, Sendable {
    case connections, connectionsRefused, framingErrors, hangUps, slowReaders, reloads, reloadsRefused

    var family: MetricFamily {
      switch self {
      case .connections: .connections
      case .connectionsRefused: .connectionsRefused
      case .framingErrors: .framingErrors
      case .hangUps: .hangUps
      case .slowReaders: .slowReaders
      case .reloads: .reloads
      case .reloadsRefused: .reloadsRefused
      }
    }
  }

  /// Numbers of the present moment, by which requests are admitted: no swift-metrics gauges, as the new value is
  /// needed.
  public enum Gauge: Int, CaseIterable, Sendable {
    case inFlight, openConnections, waiting, bodyBytes, unreadBytes

    var family: MetricFamily {
      switch self {
      case .inFlight: .inFlight
      case .openConnections: .openConnections
      case .waiting: .waiting
      case .bodyBytes: .bodyBytes
      case .unreadBytes: .unreadBytes
      }
    }
  }

  /// One number, in an object of its own against contention.
  private final class Cell: Sendable {
    let value = Atomic<Int>(0)
  }

  private let counts: [Counter]
  private let gauges = Gauge.allCases.map { _ in Cell() }

  /// Creates the counters, which are on the registry's page from now on.
  public init(registry: MetricRegistry) { counts = Name.allCases.map { registry.counter($0.family) } }

  /// Raises a counter by one.
  public func add(_ name: Name) { counts[name.rawValue].increment() }

  /// Changes a gauge and returns its new value.
  @discardableResult
  public func change(_ gauge: Gauge, by count: Int) -> Int {
    gauges[gauge.rawValue].value.wrappingAdd(count, ordering: .relaxed).newValue
  }

  /// The present value of a gauge.
  public subscript(gauge: Gauge) -> Int { gauges[gauge.rawValue].value.load(ordering: .relaxed) }

  var figures: [MetricFigure] {
    Gauge.allCases.map { MetricFigure($0.family, self[$0]) }
  }
}
