import Admin
import Idempotency
import Logging
import Loop
import NIOCore
import Proxy
import ServiceLifecycle
import Synchronization

/// How long a stop waits.
struct ProxyPatience {
  /// From not being ready to accepting no more.
  var drainDelay: Milliseconds
  /// For what is in flight.
  var grace: Milliseconds
}

/// The proxy's life: listen, serve, drain.
final class ProxyService<Store: RecordStore, Backend: Upstream>: Service {
  private enum Stage { case starting, serving, draining }

  private let server: ProxyServer<Store, Backend>
  private let listeners: [Listener]
  private let patience: Mutex<ProxyPatience>
  private let onBound: @Sendable () async throws -> Void
  private let onListening: @Sendable () -> Void
  private let logger: Logger
  private let stage = Mutex(Stage.starting)

  /// - Parameters:
  ///   - onBound: called once every address is had, and before a connection is taken; its error ends the start.
  ///   - onListening: called once every listener takes connections.
  init(
    server: ProxyServer<Store, Backend>, listeners: [Listener], patience: ProxyPatience,
    onBound: @escaping @Sendable () async throws -> Void,
    onListening: @escaping @Sendable () -> Void, logger: Logger
  ) {
    self.server = server
    self.listeners = listeners
    self.patience = Mutex(patience)
    self.onBound = onBound
    self.onListening = onListening
    self.logger = logger
  }

  /// What counts when the proxy stops.
  func adopt(_ patience: ProxyPatience) { self.patience.withLock { $0 = patience } }

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
    var channels: [any Channel] = []
    do {
      for listener in listeners { channels.append(try await bind(listener)) }
      try await onBound()
      for (channel, listener) in zip(channels, listeners) {
        try await server.startAccepting(on: channel)
        logger.info(
          "listening", metadata: ["address": "\(channel.localAddress?.plainText ?? "\(listener)")"])
      }
    } catch {
      // Removes the files of unix sockets.
      for channel in channels { try? await channel.close() }
      throw error
    }
    stage.withLock { $0 = .serving }
    onListening()
    await serve()
    stage.withLock { $0 = .draining }
    logger.info("draining")
    let patience = patience.withLock { $0 }
    try? await Task.sleep(for: .milliseconds(patience.drainDelay.count))
    for channel in channels { try? await channel.close() }
    await server.drain()
    await finish(within: patience.grace)
  }

  private func bind(_ listener: Listener) async throws -> any Channel {
    do {
      return try await server.bind(listener)
    } catch {
      throw ListenError(address: "\(listener)", error)
    }
  }

  /// Until the stop is asked for, takes renewed certificates into use.
  private func serve() async {
    let renewal = Task {
      while !Task.isCancelled {
        // Looking at a few files is cheap, and whoever renews one does not wait for it.
        try? await Task.sleep(for: .seconds(3))
        server.reloadCertificates(onlyChanged: true)
      }
    }
    try? await gracefulShutdown()
    renewal.cancel()
  }

  /// Waits for what is in flight, and says `unknown` for what does not end in time.
  private func finish(within grace: Milliseconds) async {
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
