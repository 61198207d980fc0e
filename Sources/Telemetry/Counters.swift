import Synchronization

/// The counters of the process: what became of requests, and what Semel spared the backend.
package final class Counters: Sendable {
  /// What a counter counts. Raw values are the names on the metrics page, without the prefix `semel_`.
  package enum Name: Int, CaseIterable, Sendable {
    case requests, passedThrough, executed, replayed, replayedFromCache, notStored, unknown, refused,
      unprotected
    case waited, leasesRenewed, leasesLost, storeErrors, connections, connectionsRefused, framingErrors,
      hangUps

    /// The name on the page, with its unit, and what it means.
    package var page: (name: String, help: String) {
      switch self {
      case .requests: ("requests_total", "Requests received.")
      case .passedThrough: ("passed_through_total", "Requests passed through without a record.")
      case .executed: ("executed_total", "Keyed requests that the backend ran to a final outcome.")
      case .replayed: ("replayed_total", "Recorded outcomes given again.")
      case .replayedFromCache: ("replayed_from_cache_total", "Of these, answered from the local cache.")
      case .notStored: ("not_stored_total", "Keyed requests whose outcome was of a retryable class.")
      case .unknown: ("unknown_total", "Keyed requests whose outcome became unknown.")
      case .refused: ("refused_total", "Requests that Semel itself refused.")
      case .unprotected:
        ("unprotected_total", "Keyed requests forwarded without the store (on_store_failure: open).")
      case .waited: ("waited_total", "Duplicates that waited for the first delivery.")
      case .leasesRenewed: ("leases_renewed_total", "Leases renewed for slow exchanges.")
      case .leasesLost: ("leases_lost_total", "Owners that found their record taken over.")
      case .storeErrors: ("store_errors_total", "Store commands that gave no answer.")
      case .connections: ("connections_total", "Client connections accepted.")
      case .connectionsRefused: ("connections_refused_total", "Client connections over the limit.")
      case .framingErrors: ("framing_errors_total", "Requests refused for what their bytes say.")
      case .hangUps: ("hang_ups_total", "Clients that went away before their answer.")
      }
    }
  }

  /// What is so at this moment.
  package enum Gauge: Int, CaseIterable, Sendable {
    case inFlight, openConnections, waiting, bodyBytes

    package var page: (name: String, help: String) {
      switch self {
      case .inFlight: ("in_flight", "Requests under way.")
      case .openConnections: ("open_connections", "Client connections open.")
      case .waiting: ("waiting", "Duplicates waiting for a first delivery.")
      case .bodyBytes: ("body_bytes", "Bytes of request bodies held.")
      }
    }
  }

  /// One number, alone on its cache line's worth of object, so that loops do not disturb each other.
  private final class Cell: Sendable {
    let value = Atomic<Int>(0)
  }

  private let counts = Name.allCases.map { _ in Cell() }
  private let gauges = Gauge.allCases.map { _ in Cell() }

  package init() {}

  package func add(_ name: Name, _ count: Int = 1) {
    counts[name.rawValue].value.wrappingAdd(count, ordering: .relaxed)
  }

  package subscript(name: Name) -> Int { counts[name.rawValue].value.load(ordering: .relaxed) }

  /// Changes a gauge and says what it is now.
  @discardableResult
  package func change(_ gauge: Gauge, by count: Int) -> Int {
    gauges[gauge.rawValue].value.wrappingAdd(count, ordering: .relaxed).newValue
  }

  package subscript(gauge: Gauge) -> Int { gauges[gauge.rawValue].value.load(ordering: .relaxed) }

  /// The page in Prometheus's text format.
  package func page() -> String {
    var page = ""
    for name in Name.allCases {
      let (text, help) = name.page
      page += "# HELP semel_\(text) \(help)\n# TYPE semel_\(text) counter\nsemel_\(text) \(self[name])\n"
    }
    for gauge in Gauge.allCases {
      let (text, help) = gauge.page
      page += "# HELP semel_\(text) \(help)\n# TYPE semel_\(text) gauge\nsemel_\(text) \(self[gauge])\n"
    }
    return page
  }
}
