import Logging
import Synchronization
import Telemetry

/// What all event loops of the proxy share for as long as it runs.
package final class ProxyEnvironment: Sendable {
  package let counters: Counters
  package let logger: Logger
  /// `nil` where no spans are made.
  package let tracer: Tracer?
  let waiting = WaitingRoom()
  private let draining = Atomic<Bool>(false)

  package init(counters: Counters, tracer: Tracer? = nil, logger: Logger) {
    self.counters = counters
    self.tracer = tracer
    self.logger = logger
  }

  /// Whether the proxy is shutting down: what is under way is finished, nothing new is begun.
  package var isDraining: Bool { draining.load(ordering: .relaxed) }

  package func drain() { draining.store(true, ordering: .relaxed) }
}
