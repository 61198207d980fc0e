import Idempotency
import Logging
import Synchronization
import Telemetry

/// The bounds of section 5 of the contract, `limits`.
package struct ProxyLimits: Sendable {
  package var maxConnections = 10_000
  package var maxInFlight = 4096
  /// In bytes.
  package var bodyMemory = 256 << 20
  package var headerBytes = 64 << 10
  package var headerTimeout: Milliseconds = .seconds(10)
  package var bodyTimeout: Milliseconds = .seconds(30)
  package var idleTimeout: Milliseconds = .seconds(75)

  package init() {}
}

/// What all event loops of the proxy share.
package final class ProxyEnvironment: Sendable {
  package let routes: RouteTable
  /// Where requests go that no route names; `nil` where there are several upstreams.
  package let fallback: UpstreamSettings?
  package let limits: ProxyLimits
  package let counters: Counters
  package let accessLog: AccessLog
  package let logger: Logger
  let waiting = WaitingRoom()
  private let draining = Atomic<Bool>(false)

  package init(
    routes: RouteTable, fallback: UpstreamSettings?, limits: ProxyLimits, counters: Counters,
    accessLog: AccessLog,
    logger: Logger
  ) {
    self.routes = routes
    self.fallback = fallback
    self.limits = limits
    self.counters = counters
    self.accessLog = accessLog
    self.logger = logger
  }

  /// Whether the proxy is shutting down: what is under way is finished, nothing new is begun.
  package var isDraining: Bool { draining.load(ordering: .relaxed) }

  package func drain() { draining.store(true, ordering: .relaxed) }
}

/// Who stands at the other end of a client's connection.
struct ClientPeer: Sendable {
  /// The IP address as text; empty for a unix socket.
  var address: String
  /// `X-Forwarded-For` and `X-Forwarded-Proto` for the backend, as field lines.
  var forwardedLines: String

  init(address: String) {
    self.address = address
    let forwardedFor = address.isEmpty ? "" : "X-Forwarded-For: \(address)\r\n"
    forwardedLines = forwardedFor + "X-Forwarded-Proto: http\r\n"
  }
}
