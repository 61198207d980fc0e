import Admin
import Idempotency
import Logging
import NIOCore
import Proxy
import ServiceLifecycle
import Synchronization

/// Why the proxy cannot listen, with the address in it: the system's own text lacks it.
struct ListenError: Error, CustomStringConvertible {
  let address: String
  let reason: String

  var description: String { "cannot listen on \(address): \(reason)" }
}

/// The proxy's life: listen, serve, drain.
final class ProxyService<Store: RecordStore, Backend: Upstream>: Service {
  private enum Stage { case starting, serving, draining }

  private let server: ProxyServer<Store, Backend>
  private let addresses: [ProxyServer<Store, Backend>.Address]
  private let drainDelay: Milliseconds
  private let grace: Milliseconds
  private let logger: Logger
  private let stage = Mutex(Stage.starting)

  init(
    server: ProxyServer<Store, Backend>, addresses: [ProxyServer<Store, Backend>.Address],
    drainDelay: Milliseconds,
    grace: Milliseconds, logger: Logger
  ) {
    self.server = server
    self.addresses = addresses
    self.drainDelay = drainDelay
    self.grace = grace
    self.logger = logger
  }

  /// What `/readyz` says.
  var readiness: Readiness {
    get async {
      switch stage.withLock({ $0 }) {
      case .starting: .notReady("starting")
      case .draining: .notReady("draining")
      case .serving: .ready
      }
    }
  }

  func run() async throws {
    var listeners: [any Channel] = []
    for address in addresses {
      let listener: any Channel
      do {
        listener = try await server.listen(on: address)
      } catch {
        throw ListenError(address: "\(address)", reason: "\(error)")
      }
      logger.info(
        "listening", metadata: ["address": "\(listener.localAddress.map { "\($0)" } ?? "\(address)")"])
      listeners.append(listener)
    }
    stage.withLock { $0 = .serving }
    try? await gracefulShutdown()
    stage.withLock { $0 = .draining }
    logger.info("draining")
    try? await Task.sleep(for: .milliseconds(drainDelay.count))
    for listener in listeners { try? await listener.close() }
    await server.drain()
    await finish()
  }

  /// Waits for what is in flight, and says `unknown` for what does not end in time.
  private func finish() async {
    let end = ContinuousClock.now.advanced(by: .milliseconds(grace.count))
    while await !server.isIdle() {
      guard ContinuousClock.now < end else {
        logger.warning("what is still in flight is marked unknown")
        return await server.abandon()
      }
      // Ends are counted, not announced, so that a request pays nothing for the one shutdown; hence the look.
      try? await Task.sleep(for: .milliseconds(10))
    }
  }
}
