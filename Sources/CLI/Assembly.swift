import ArgumentParser
import Admin
import Idempotency
import Logging
import Loop
import NIOCore
import NIOPosix
import Proxy
import ServiceLifecycle
import Settings
import Store
import Telemetry
import Transport
import UnixSignals

/// Builds the whole program from its settings. The only place that knows every module.
struct Assembly {
  private let settings: Settings
  private let sink = LogSink()
  private let counters = Counters()
  private let logger: Logger

  init(settings: Settings) {
    self.settings = settings
    let (log, sink) = (settings.log, sink)
    var logger = Logger(label: "semel") {
      StructuredLogHandler(label: $0, level: .info, format: LogFormat(log.format), sink: sink)
    }
    logger.logLevel = Logger.Level(rawValue: log.level.rawValue) ?? .info
    self.logger = logger
  }

  /// Runs until a signal ends it; what else is given ends with it.
  func run(beside services: [any Service] = []) async throws {
    for warning in settings.warnings { logger.warning("\(warning)") }
    defer { sink.flush() }
    let group = MultiThreadedEventLoopGroup(
      numberOfThreads: settings.workers > 0 ? settings.workers : System.coreCount)
    let contexts = group.makeIterator().map { EventLoopContext(loop: $0) }
    do throws(any Error) {
      switch settings.store.place {
      case .embedded(let path):
        let store = try EmbeddedStore(path: path, logger: logger)
        let cache = LocalCache(capacityBytes: settings.store.localCacheBytes)
        try await serve(contexts, group, services) { _ in CachedStore(store, cache: cache) }
        await store.close()
      case .redis(let redis):
        let endpoint = RedisEndpointSettings(redis, in: settings.store)
        // Not subscribed yet: until it is, the cache is passed by.
        let cache = LocalCache(capacityBytes: settings.store.localCacheBytes, isSubscribed: false)
        let hub = RedisHub(context: contexts[0], settings: endpoint, logger: logger)
        hub.observe { cache.follow($0) }
        try await serve(contexts, group, services) { context in
          CachedStore(
            RedisStore(context: context, settings: endpoint, logger: logger, hub: hub), cache: cache)
        }
        hub.close()
      }
    } catch {
      logger.critical("semel stops", metadata: ["error": "\(error)"])
      sink.flush()
      StandardError.print("semel: \(error)")
      throw ExitCode.failure
    }
    logger.info("semel has stopped")
  }

  private func serve<Records: RecordStore>(
    _ contexts: [EventLoopContext], _ group: MultiThreadedEventLoopGroup, _ services: [any Service],
    store: (EventLoopContext) -> Records
  ) async throws {
    let environment = ProxyEnvironment(
      routes: RouteTable(settings.routes), fallback: settings.onlyUpstream,
      limits: ProxyLimits(settings.limits),
      counters: counters, accessLog: accessLog, logger: logger)
    let watcher = try CurlWatcher()
    let workers = try contexts.map { context in
      Worker(
        context: context, store: store(context),
        backend: try CurlUpstream(context: context, loops: contexts.count, watcher: watcher, logger: logger),
        environment: environment)
    }
    let server = ProxyServer(workers: workers, environment: environment, group: group)
    let proxy = ProxyService(
      server: server, addresses: settings.listen.map(ProxyServer<Records, CurlUpstream>.Address.init),
      drainDelay: settings.drainDelay, grace: settings.shutdownGrace, logger: logger)
    var all = services
    if let admin = try adminServer(readiness: { await proxy.readiness }) { all.append(admin) }
    // Stopped in reverse order: the proxy first, so that the probes tell of it.
    all.append(proxy)
    try await ServiceGroup(
      configuration: .init(
        services: all.map { .init(service: $0, successTerminationBehavior: .gracefullyShutdownGroup) },
        gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet)
    ).run()
  }

  private var accessLog: AccessLog {
    AccessLog(
      sink: sink, format: LogFormat(settings.log.format),
      isEnabled: settings.log.access && logger.logLevel <= .info)
  }

  /// The lifecycle's own log tells of services and signals; only its complaints are of use to an operator.
  private var quiet: Logger {
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .error)
    return quiet
  }

  private func adminServer(readiness: @escaping @Sendable () async -> Readiness) throws -> AdminServer? {
    guard let admin = settings.admin else { return nil }
    return AdminServer(
      host: admin.host, port: admin.port, token: try admin.tokenFile.map(ConfigurationFile.secret(at:)),
      counters: counters, readiness: readiness, logger: logger)
  }
}
