import ArgumentParser
import Idempotency
import Logging
import Platform
import ServiceLifecycle
import Settings
import Store
import Telemetry
import UnixSignals

/// Builds the whole program from its settings, and runs it: this folder alone puts implementations behind the ports.
struct Assembly {
  private let settings: Settings
  /// The configuration file; `nil` if there is none, and no reload.
  private let file: ConfigurationFile?
  /// The requests for a reload, among them those that came since the process began.
  private let reloads: UnixSignalsSequence?
  /// The option that names the address of the first listener; `nil` if the configuration file does.
  private let listenOption: String?
  private let onListening: @Sendable () -> Void
  private let log: ProgramLog
  private var logger: Logger { log.logger }

  init(
    settings: Settings, reloading file: ConfigurationFile? = nil, on reloads: UnixSignalsSequence? = nil,
    listenOption: String? = nil, onListening: @escaping @Sendable () -> Void = {}
  ) {
    self.settings = settings
    self.file = file
    self.reloads = reloads
    self.listenOption = listenOption
    self.onListening = onListening
    log = ProgramLog(settings)
  }

  /// Runs until a signal ends the program. Throws `ExitCode` once the log and the standard error name the reason.
  func run(beside services: [any Service] = []) async throws {
    log.sink.surviveCrashes()
    for warning in settings.warnings { logger.warning("\(warning)") }
    defer { log.close() }
    do throws(any Error) {
      let descriptors = DescriptorLimit.raise()
      try DescriptorLimit.require(descriptors)
      let parts = ProcessParts(settings, log, descriptors: descriptors)
      switch settings.store.place {
      case .embedded(let path): try await run(path, parts, beside: services)
      case .redis(let redis): try await run(redis, parts, beside: services)
      }
    } catch let refusal as IdentityRefusal {
      for reason in refusal.reasons { StandardError.print("semel: \(reason)") }
      logger.critical(
        "semel stops: \(IdentityRefusal.summary)",
        metadata: ["reasons": "\(refusal.reasons.joined(separator: "; "))"])
      throw ExitCode.badConfiguration
    } catch {
      let places = ListenPlace.all(of: settings, option: listenOption)
      let reason = ListenFault(error, at: places)?.description ?? "\(error)"
      logger.critical("semel stops", metadata: ["error": "\(reason)"])
      log.flush()
      throw failed("\(reason)")
    }
    logger.info("semel has stopped")
  }

  private func makeCodec() -> OutcomeCodec {
    OutcomeCodec(
      secrets: settings.store.encryption?.secrets ?? [], compression: .init(settings.store.compression))
  }

  private func run(_ path: String, _ parts: ProcessParts, beside services: [any Service]) async throws {
    let codec = makeCodec()
    let store = try EmbeddedStore(
      path: path, timeout: settings.store.timeout, requiresDurable: settings.store.requireDurable,
      codec: codec, logger: logger, flushLog: log.flush)
    let cache = LocalCache(capacityBytes: settings.store.localCacheBytes)
    parts.metrics.addSource(store)
    parts.metrics.addSource(codec)
    parts.metrics.addSource(cache)
    let logSecret = parts.logSecret(in: store)
    let namespace = NamespaceGuard(
      settings, facts: store, logSecret: logSecret, logger: logger)
    // No later comparison follows: the store belongs to this process alone, and is as reachable now as it will be.
    try await Self.untilReached { try Self.pending(await namespace.compare()) }
    let assembled = AssembledStore(
      records: parts.records(over: parts.contexts.map { _ in store }, cache), facts: store,
      namespace: namespace, readiness: StoreReadiness(of: settings.store, [store.monitor]),
      logSecret: logSecret,
      enter: { try await Self.untilReached { try Self.pending(await namespace.begin()) } })
    do {
      try await serve(assembled, parts, beside: services)
    } catch {
      await store.close()
      throw error
    }
    await store.close()
  }

  private func run(_ redis: RedisSettings, _ parts: ProcessParts, beside services: [any Service]) async throws
  {
    var endpoint = try RedisEndpointSettings(redis, in: settings.store)
    endpoint.awaitsAdmission = true
    // The cache is bypassed until the subscription is established.
    let cache = LocalCache(capacityBytes: settings.store.localCacheBytes, isSubscribed: false)
    let subscriber = RedisSubscriber(context: parts.contexts[0], settings: endpoint, logger: logger)
    subscriber.observe { cache.follow($0) }
    parts.metrics.addSource(cache)
    let stores = makeStores(on: parts, endpoint, subscriber)
    parts.metrics.addSource(subscriber)
    let logSecret = parts.logSecret(in: stores[0])
    let namespace = NamespaceGuard(
      settings, facts: stores[0], directory: stores[0], logSecret: logSecret,
      logger: logger)
    let watch = NamespaceService(namespace: namespace, stores: stores, logger: logger)
    try Self.pending(await namespace.compare())
    let assembled = AssembledStore(
      records: parts.records(over: stores, cache), facts: stores[0], namespace: namespace,
      readiness: StoreReadiness(
        of: settings.store, stores.map(\.counters.monitor),
        topology: { [counters = stores[0].counters] in counters.topology }), logSecret: logSecret,
      services: [watch],
      board: stores[0], invalidations: stores[0],
      onAlarm: { subscriber.observeAlarms($0) },
      enter: {
        let admission = await namespace.begin()
        try Self.pending(admission)
        watch.follow(admission)
      })
    defer {
      subscriber.close()
      for store in stores { store.close() }
    }
    try await serve(assembled, parts, beside: services)
  }

  private func makeStores(
    on parts: ProcessParts, _ endpoint: RedisEndpointSettings, _ subscriber: RedisSubscriber
  ) -> [RedisStore] {
    let codec = makeCodec()
    let stores = zip(parts.contexts, parts.metrics.loops).map { context, loop in
      RedisStore(
        context: context, settings: endpoint, logger: logger, subscriber: subscriber, codec: codec
      ) { loop.waited(microseconds: $0) }
    }
    parts.metrics.addSource(codec)
    parts.metrics.addSource(stores.map(\.counters))
    return stores
  }

  private func serve<Records: RecordStore>(
    _ store: AssembledStore<Records>, _ parts: ProcessParts, beside services: [any Service]
  ) async throws {
    try await ProgramServices(
      settings: settings, file: file, reloads: reloads, log: log, parts: parts, store: store,
      onListening: onListening
    ).run(beside: services)
  }
}

extension Assembly {
  /// The time for which a start tries an embedded store that does not reply, such as one that another process leaves.
  private static let maxStartWait = Duration.seconds(10)

  /// Repeats a step, which returns the reason why it has not reached the store. Throws after `maxStartWait`.
  private static func untilReached(_ step: () async throws -> String?) async throws {
    let end = ContinuousClock.now + maxStartWait
    while let reason = try await step() {
      guard ContinuousClock.now < end else { throw NamespaceUnreadable(reason: reason) }
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  /// The reason for which the store was not reached; `nil` if the configuration is admitted. Throws a refusal.
  @discardableResult
  private static func pending(_ admission: NamespaceGuard.Admission) throws -> String? {
    switch admission {
    case .admitted: return nil
    case .pending(let reason): return reason
    case .refused(let reasons): throw IdentityRefusal(reasons: reasons)
    }
  }
}
