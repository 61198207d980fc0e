import CoreMetrics
import Synchronization

/// What is counted and bounded over all event loops at once: connections, and what is under way.
public final class Counters: Sendable {
  /// What only grows, by one for a connection or more rarely: told through swift-metrics.
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

  /// What is so at this moment, and decides what is let in: whoever changes it is told what it has become, which
  /// swift-metrics' gauges cannot.
  public enum Gauge: Int, CaseIterable, Sendable {
    case inFlight, openConnections, waiting, bodyBytes

    var family: MetricFamily {
      switch self {
      case .inFlight: .inFlight
      case .openConnections: .openConnections
      case .waiting: .waiting
      case .bodyBytes: .bodyBytes
      }
    }
  }

  /// One number, alone on its cache line's worth of object, so that loops do not disturb each other.
  private final class Cell: Sendable {
    let value = Atomic<Int>(0)
  }

  private let counts: [Counter]
  private let gauges = Gauge.allCases.map { _ in Cell() }

  /// - Parameters:
  ///   - registry: where its counters are told; they stand on its page from now on.
  public init(registry: MetricRegistry) { counts = Name.allCases.map { registry.counter($0.family) } }

  public func add(_ name: Name) { counts[name.rawValue].increment() }

  /// Changes a gauge and says what it is now.
  @discardableResult
  public func change(_ gauge: Gauge, by count: Int) -> Int {
    gauges[gauge.rawValue].value.wrappingAdd(count, ordering: .relaxed).newValue
  }

  public subscript(gauge: Gauge) -> Int { gauges[gauge.rawValue].value.load(ordering: .relaxed) }

  var figures: [MetricFigure] {
    Gauge.allCases.map { MetricFigure($0.family, self[$0]) }
  }
}
