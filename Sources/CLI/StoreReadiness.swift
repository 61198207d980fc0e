import Admin
import Settings
import Store

/// The store's part in the readiness of this process.
struct StoreReadiness: Sendable {
  /// The store's kind, topology and place, such as `embedded semel.db` or `redis cluster 10.0.0.1:6379`.
  private let name: String
  private let monitors: [StoreMonitor]
  /// Returns the servers that hold the records now; `nil` while none is known.
  private let topology: @Sendable () -> String?

  init(
    of settings: StoreSettings, _ monitors: [StoreMonitor],
    topology: @escaping @Sendable () -> String? = { nil }
  ) {
    self.topology = topology
    name =
      switch settings.place {
      case .embedded(let path): "embedded \(path)"
      case .redis(let redis): "redis \(redis.place)"
      }
    self.monitors = monitors
  }

  private var state: StoreState { .combined(monitors.map(\.state)) }

  /// The store and its state, for a person, and the servers that hold the records now.
  var lines: [String] {
    ["store \(name): \(state.status)"] + (topology().map { ["store_topology \($0)"] } ?? [])
  }

  /// - Parameter rule: Whether a store that was available before counts as ready.
  func verdict(_ rule: Settings.Readiness) -> Readiness {
    let state = state
    let isReady = rule == .started ? state.hasServed : state.status == .serving
    return isReady ? .ready : .notReady("the store is \(state.status)")
  }
}
