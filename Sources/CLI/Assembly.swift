import Admin
import ArgumentParser
import CoreMetrics
import Idempotency
import Logging
import NIOCore
import NIOPosix
import Platform
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
  /// The configuration file; `nil` if there is none, and no reload.
  private let file: ConfigurationFile?
  /// Called once every listener accepts connections.
  private let onListening: @Sendable () -> Void
  private let sink: LogSink
  private let tracer: Tracer?
  private let threshold: LogThreshold
  private let logger: Logger

  init(
    settings: Settings, file: ConfigurationFile? = nil, onListening: @escaping @Sendable () -> Void = {}
  ) {
    self.settings = settings
    self.onListening = onListening
    tracer = settings.tracing.map(Tracer.init)
    self.file = file
    let format = LogFormat(settings.log.format)
    let (sink, threshold) = (LogSink(format: format), LogThreshold(Logger.Level(settings.log.level)))
    self.sink = sink
    self.threshold = threshold
    logger = Logger(label: "semel") {
      StructuredLogHandler(label: $0, threshold: threshold, format: format, sink: sink)
    }
  }

  /// Runs until a signal ends the program, together with the given services.
  func run(beside services: [any Service] = []) async throws {
    for warning in settings.warnings { logger.warning("\(warning)") }
    defer {
      tracer?.close()
      sink.flush()
    }
    let group = MultiThreadedEventLoopGroup(
      numberOfThreads: settings.workers > 0 ? settings.workers : System.coreCount)
    let contexts = group.makeIterator().map { EventLoopContext(loop: $0) }
    let descriptors = DescriptorLimit.raise()
    if let warning = DescriptorLimit.warning(of: settings, loops: contexts.count, limit: descriptors) {
      logger.warning("\(warning)")
    }
    let metrics = Metrics(loops: contexts.count)
    // Before any library creates a metric. A process has one assembly.
    MetricsSystem.bootstrap(metrics.registry)
    metrics.addSource(sink)
    metrics.addSource(tracer)
    let failures = StoreFailureLog(logger: logger)
    let known = KnownRecords()
    do throws(any Error) {
      switch settings.store.place {
      case .embedded(let path):
        let store = try EmbeddedStore(
          path: path, timeout: settings.store.timeout, requiresDurable: settings.store.requireDurable,
          isWallTrusted: settings.store.trustsClock, logger: logger)
        let cache = LocalCache(capacityBytes: settings.store.localCacheBytes)
        metrics.addSource(store)
        metrics.addSource(cache)
        let readiness = StoreReadiness(of: settings.store, [store.monitor])
        let namespace = NamespaceGuard(settings, facts: store, isShared: false, logger: logger)
        // No later comparison follows: the store belongs to this process alone, and is as reachable now as it will be.
        try await Self.untilReached { try await compare(namespace) }
        try await serve(
          contexts, group, metrics, services, readiness, known, store, namespace,
          enter: {
            try await Self.untilReached {
              if case .pending(let reason) = try await Self.begin(namespace) { reason } else { nil }
            }
          }
        ) { index in
          let store = MeasuredStore(store, metrics: metrics.loops[index], failures: failures)
          return CachedStore(store, cache: cache)
        }
        await store.close()
      case .redis(let redis):
        var endpoint = try RedisEndpointSettings(redis, in: settings.store)
        endpoint.awaitsAdmission = true
        // The cache is bypassed until the subscription is established.
        let cache = LocalCache(capacityBytes: settings.store.localCacheBytes, isSubscribed: false)
        let subscriber = RedisSubscriber(context: contexts[0], settings: endpoint, logger: logger)
        subscriber.observe { cache.follow($0) }
        metrics.addSource(cache)
        let stores = contexts.map {
          RedisStore(context: $0, settings: endpoint, logger: logger, subscriber: subscriber)
        }
        metrics.addSource(stores.map(\.counters))
        metrics.addSource(subscriber)
        let readiness = StoreReadiness(of: settings.store, stores.map(\.counters.monitor))
        let facts = stores[0].facts
        let namespace = NamespaceGuard(
          settings, facts: facts, directory: RedisDirectory(stores[0]), isShared: true, logger: logger)
        let watch = NamespaceService(namespace: namespace, stores: stores, logger: logger)
        _ = try await compare(namespace)
        try await serve(
          contexts, group, metrics, services + [watch], readiness, known, facts, namespace,
          board: RedisCensus(stores[0]), invalidations: RedisInvalidations(stores[0]),
          enter: { watch.follow(try await Self.begin(namespace)) }
        ) { index in
          let store = MeasuredStore(stores[index], metrics: metrics.loops[index], failures: failures)
          return CachedStore(store, cache: cache)
        }
        subscriber.close()
      }
    } catch let refusal as IdentityRefusal {
      for reason in refusal.reasons { StandardError.print("semel: \(reason)") }
      logger.critical("semel stops: \(IdentityRefusal.summary)", metadata: ["reasons": "\(refusal.reasons)"])
      sink.flush()
      throw ExitCode.badConfiguration
    } catch {
      logger.critical("semel stops", metadata: ["error": "\(error)"])
      sink.flush()
      StandardError.print("semel: \(error)")
      throw ExitCode.failure
    }
    logger.info("semel has stopped")
  }

  /// Compares the configuration with its namespace before any listener opens. Returns the reason if the store cannot be
  /// reached.
  private func compare(_ namespace: NamespaceGuard) async throws -> String? {
    switch await namespace.compare() {
    case .accepted: return nil
    case .unreached(let reason): return reason
    case .refused(let reasons): throw IdentityRefusal(reasons: reasons)
    }
  }

  /// The time for which a start asks an embedded store that does not reply, in seconds: a slow disk, or a process of
  /// before that is about to end, must not fail it.
  private static let patience = Duration.seconds(10)

  /// Repeats a step until it reaches the embedded store.
  ///
  /// - Parameter step: Returns the reason why it has not reached the store.
  /// - Throws: `NamespaceUnreadable` after `patience`.
  private static func untilReached(_ step: () async throws -> String?) async throws {
    let end = ContinuousClock.now + patience
    while let reason = try await step() {
      guard ContinuousClock.now < end else { throw NamespaceUnreadable(reason: reason) }
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  /// Enters the configuration in its namespace, if the store can be reached.
  private static func begin(_ namespace: NamespaceGuard) async throws -> NamespaceGuard.Standing {
    let standing = await namespace.begin()
    if case .refused(let reasons) = standing { throw IdentityRefusal(reasons: reasons) }
    return standing
  }

  private func serve<Records: RecordStore>(
    _ contexts: [EventLoopContext], _ group: MultiThreadedEventLoopGroup, _ metrics: Metrics,
    _ services: [any Service], _ readiness: StoreReadiness, _ known: KnownRecords,
    _ facts: any NamespaceFacts, _ namespace: NamespaceGuard, board: (any CensusBoard)? = nil,
    invalidations: (any CacheInvalidations)? = nil, enter: @escaping @Sendable () async throws -> Void,
    store: (Int) -> Records
  ) async throws {
    metrics.addSource(namespace)
    let identityKey = settings.store.idSecret.map(IdentityKey.init)
    let digests = LogDigests(secret: settings.store.idSecret)
    let environment = ProxyEnvironment(
      counters: metrics.counters, tracer: tracer, identityKey: identityKey, digests: digests, known: known,
      logger: logger)
    let configuration = configuration(of: settings, metrics)
    let strayBytes = StrayBytes(upstreams: Array(settings.upstreams.keys))
    metrics.addSource(strayBytes)
    let backends = contexts.map {
      HTTPUpstream(context: $0, loops: contexts.count, logger: logger, strayBytes: strayBytes)
    }
    metrics.addSource(Array(zip(contexts, backends)))
    let workers = contexts.indices.map { index in
      Worker(
        context: contexts[index], store: store(index), backend: backends[index], environment: environment,
        configuration: configuration, metrics: metrics.loops[index])
    }
    let server = ProxyServer(workers: workers, environment: environment, group: group)
    let adminStands = OperatorGate(isNeeded: settings.admin != nil)
    let proxy = ProxyService(
      server: server, listeners: try settings.listen.map(Listener.init),
      patience: ProxyPatience(settings),
      onBound: {
        try await adminStands.opened()
        try await enter()
      }, onListening: onListening, logger: logger)
    let reload = file.map { file in
      ConfigurationReload(
        of: file, counters: metrics.counters, logger: logger, check: { await namespace.adopt($0) }
      ) { [self] settings in
        await server.adopt(self.configuration(of: settings, metrics))
        server.reloadCertificates()
        proxy.adopt(ProxyPatience(settings))
        threshold.level = Logger.Level(settings.log.level)
      }
    }
    var all = services
    if !digests.isShared { all.append(LogSecretService(facts: facts, digests: digests)) }
    let live: @Sendable () async -> Settings = { [settings] in await reload?.settings ?? settings }
    let recordAdmin = RecordAdmin(
      store: store(0), context: contexts[0], invalidations: invalidations, identityKey: identityKey,
      routes: { await live().routes }, onFreed: { known.remove($0) }, logger: logger)
    if let admin = try adminServer(
      metrics, recordAdmin, live,
      readiness: {
        let own = await proxy.readiness
        guard own == .ready else { return own }
        let verdict = readiness.verdict(await live().readiness)
        return verdict == .ready ? namespace.readiness : verdict
      },
      configuration: { await reload?.standing },
      surroundings: {
        [readiness.line] + (await live().upstreams.keys.sorted()).map { "upstream \($0)" }
      }, onListening: { adminStands.open() })
    {
      let census = RecordCensus(recordAdmin: recordAdmin, board: board)
      metrics.source { census.figures }
      all += [census, admin]
    }
    if let reload {
      all.append(ReloadService(signals: await UnixSignalsSequence(trapping: .sighup), reload: reload))
    }
    // Services stop in reverse order: the proxy first, so that the probes report its stop.
    all.append(proxy)
    try await ServiceGroup(
      configuration: .init(
        services: all.map { .init(service: $0, successTerminationBehavior: .gracefullyShutdownGroup) },
        gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet)
    ).run()
  }

  /// Returns the configuration snapshot for the event loops, at start and at each reload.
  private func configuration(of settings: Settings, _ metrics: Metrics) -> ConfigurationSnapshot {
    ConfigurationSnapshot(
      routes: RouteTable(settings.routes, number: metrics.number(ofRoute:)), fallback: settings.onlyUpstream,
      limits: settings.limits,
      accessLog: AccessLog(
        sink: sink, format: LogFormat(settings.log.format),
        isEnabled: settings.log.access && Logger.Level(settings.log.level) <= .info,
        replaySample: settings.log.replaySample),
      trustedProxies: settings.trustedProxies, unmatchedKeys: settings.unmatchedKeys,
      passesUnderscores: settings.underscores == .pass)
  }

  /// The logger of the service lifecycle. Its own entries are about services and signals, and repeat the error that
  /// ends the process.
  private var quiet: Logger {
    var quiet = logger
    quiet.logLevel = .critical
    return quiet
  }

  private func adminServer(
    _ metrics: Metrics, _ recordAdmin: RecordAdmin, _ settings: @escaping @Sendable () async -> Settings,
    readiness: @escaping @Sendable () async -> Readiness,
    configuration: @escaping @Sendable () async -> ConfigurationStanding?,
    surroundings: @escaping @Sendable () async -> [String], onListening: @escaping @Sendable () -> Void
  ) throws -> AdminServer? {
    guard let admin = self.settings.admin else { return nil }
    return AdminServer(
      host: admin.host, port: admin.port, names: admin.hosts,
      token: try admin.tokenFile.map(ConfigurationFile.secret(at:)),
      metrics: metrics, readiness: readiness, configuration: configuration, surroundings: surroundings,
      recordAdmin: recordAdmin,
      settings: { await settings().shownJSON }, onListening: onListening, logger: logger)
  }
}
