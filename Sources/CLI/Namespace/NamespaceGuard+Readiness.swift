import Admin
import Telemetry

extension NamespaceGuard {
  /// The readiness of the process as far as it depends on the namespace.
  nonisolated var readiness: Readiness {
    switch standing {
    case .pending(let reason): .notReady("the store has not been reached: \(reason)")
    case .refused: .notReady(IdentityRefusal.summary)
    case .admitted: .ready
    }
  }
}

extension Metrics {
  func tell(of namespace: NamespaceGuard) {
    source { [MetricFigure(.namespaceConflicts, namespace.conflicts)] }
  }
}
