import Synchronization

/// What is counted and bounded over all event loops at once: connections, and what is under way.
public final class Counters: Sendable {
  /// What only grows.
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

  /// What is so at this moment.
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

  private let counts = Name.allCases.map { _ in Cell() }
  private let gauges = Gauge.allCases.map { _ in Cell() }

  public init() {}

  public func add(_ name: Name, _ count: Int = 1) {
    counts[name.rawValue].value.wrappingAdd(count, ordering: .relaxed)
  }

  public subscript(name: Name) -> Int { counts[name.rawValue].value.load(ordering: .relaxed) }

  /// Changes a gauge and says what it is now.
  @discardableResult
  public func change(_ gauge: Gauge, by count: Int) -> Int {
    gauges[gauge.rawValue].value.wrappingAdd(count, ordering: .relaxed).newValue
  }

  public subscript(gauge: Gauge) -> Int { gauges[gauge.rawValue].value.load(ordering: .relaxed) }

  var figures: [MetricFigure] {
    Name.allCases.map { MetricFigure($0.family, self[$0]) }
      + Gauge.allCases.map { MetricFigure($0.family, self[$0]) }
  }
}
