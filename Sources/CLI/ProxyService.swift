import Admin
import Idempotency
import Logging
import NIOCore
import Platform
import Proxy
import ServiceLifecycle
import Settings
import Store
import Synchronization

/// The durations of an orderly stop.
struct StopDurations {
  /// The time from the end of readiness until no more connections are accepted.
  var drainDelay: Milliseconds
  var grace: Milliseconds
}

/// The service that runs the proxy: listen, serve, drain.
final class ProxyService<Store: RecordStore, Backend: Upstream>: Service {
  private enum Stage { case starting, serving, draining }

  private let server: ProxyServer<Store, Backend>
  private let listeners: [Listener]
  private let stopDurations: Mutex<StopDurations>
  private let onBound: @Sendable () async throws -> Void
  private let onListening: @Sendable () -> Void
  private let renewFiles: @Sendable () -> Void
  private let logger: Logger
  private let stage = Mutex(Stage.starting)

  /// - Parameters:
  ///   - onBound: Called once every address is bound, before a connection is accepted. Its error ends the start.
  ///   - renewFiles: Called every few seconds: takes changed files into use, besides those of the listeners.
  init(
    server: ProxyServer<Store, Backend>, listeners: [Listener], stopDurations: StopDurations,
    onBound: @escaping @Sendable () async throws -> Void,
    onListening: @escaping @Sendable () -> Void, renewFiles: @escaping @Sendable () -> Void, logger: Logger
  ) {
    self.server = server
    self.listeners = listeners
    self.stopDurations = Mutex(stopDurations)
    self.onBound = onBound
    self.onListening = onListening
    self.renewFiles = renewFiles
    self.logger = logger
  }

  func adopt(_ stopDurations: StopDurations) { self.stopDurations.withLock { $0 = stopDurations } }

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
      // Removes the files of Unix sockets.
      for channel in channels { try? await channel.close() }
      throw error
    }
    stage.withLock { $0 = .serving }
    onListening()
    await serve()
    stage.withLock { $0 = .draining }
    logger.info("draining")
    let stopDurations = stopDurations.withLock { $0 }
    try? await Task.sleep(for: .milliseconds(stopDurations.drainDelay.count))
    for channel in channels { try? await channel.close() }
    await server.drain()
    await finish(within: stopDurations.grace)
  }

  private func bind(_ listener: Listener) async throws -> any Channel {
    do {
      return try await server.bind(listener)
    } catch let error as SocketAddressError.UnknownHost {
      // `ListenFault` names the listener.
      throw error
    } catch {
      throw ListenError(address: "\(listener)", error)
    }
  }

  /// Serves until the stop is requested. Meanwhile, renewed certificates are taken into use.
  private func serve() async {
    let renewal = Task { [server, renewFiles] in
      while !Task.isCancelled {
        // Checking a few files is cheap, and a renewal need not take effect at once.
        try? await Task.sleep(for: .seconds(3))
        server.reloadCertificates(onlyChanged: true)
        renewFiles()
      }
    }
    try? await gracefulShutdown()
    renewal.cancel()
  }

  /// Waits for requests in progress, and marks as unknown those that do not end in time.
  private func finish(within grace: Milliseconds) async {
    let end = ContinuousClock.now.advanced(by: .milliseconds(grace.count))
    while await !server.isIdle() {
      guard ContinuousClock.now < end else {
        logger.warning("requests that are still in flight are marked unknown")
        return await server.abandon()
      }
      // Ends of requests are counted but not signalled, so that requests pay nothing for the one shutdown.
      try? await Task.sleep(for: .milliseconds(10))
    }
  }
}

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
