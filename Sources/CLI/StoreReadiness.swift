import Admin
import Settings
import Store

/// The store's part in whether this process should be given requests.
struct StoreReadiness: Sendable {
  /// Such as `embedded semel.db`.
  private let name: String
  /// Of each of its connections.
  private let monitors: [StoreMonitor]

  init(of settings: StoreSettings, _ monitors: [StoreMonitor]) {
    name =
      switch settings.place {
      case .embedded(let path): "embedded \(path)"
      case .redis(let redis): "redis \(RedisEndpointSettings(redis, in: settings).address)"
      }
    self.monitors = monitors
  }

  private var state: StoreState { .combined(monitors.map(\.state)) }

  /// For people: the store and its state.
  var line: String { "store \(name): \(state.status)" }

  /// - Parameter rule: whether a store counts that has served before.
  func verdict(_ rule: Settings.Readiness) -> Readiness {
    let state = state
    let isReady = rule == .started ? state.hasServed : state.status == .serving
    return isReady ? .ready : .notReady("the store is \(state.status)")
  }
}
