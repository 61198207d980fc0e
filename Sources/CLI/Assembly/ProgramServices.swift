import Admin
import Idempotency
import Logging
import NIOCore
import Platform
import Proxy
import ServiceLifecycle
import Settings
import Store
import Telemetry
import Transport
import UnixSignals

/// The services of the program on one store: the proxy, the admin listener, reloads, and what they share.
struct ProgramServices<Records: RecordStore> {
  typealias Server = ProxyServer<Records, HTTPUpstream>

  let settings: Settings
  let file: ConfigurationFile?
  let reloads: UnixSignalsSequence?
  let log: ProgramLog
  let parts: ProcessParts
  let store: AssembledStore<Records>
  let onListening: @Sendable () -> Void
  private let backendTLS = BackendTLS()
  private let unreached = UnreachedBackends()
  private let proxyStands = ListeningGate(isNeeded: true)

  private var metrics: Metrics { parts.metrics }
  private var logger: Logger { log.logger }
  private var identityKey: IdentityKey? { settings.store.idSecret.map(IdentityKey.init) }

  func run(beside others: [any Service]) async throws {
    let adminTokens = try AdminTokens(settings.admin)
    metrics.source { [namespace = store.namespace] in [MetricFigure(.namespaceConflicts, namespace.conflicts)]
    }
    await parts.tokens.adopt(settings)
    let backends = makeBackends()
    let server = makeServer(on: backends)
    store.onAlarm { server.renewLeases() }
    let adminStands = ListeningGate(isNeeded: settings.admin != nil)
    let renewFiles = fileRenewal(with: adminTokens)
    let proxy = try makeProxy(server, after: adminStands, renewFiles)
    let reload = file.map { makeReload(of: $0, server, backends, proxy, renewFiles) }
    var all = others + store.services + [MemoryReturn()]
    if let secret = store.logSecret { all.append(LogSecretService(secret: secret)) }
    all += adminServices(proxy, reload, adminStands, adminTokens)
    if let reload, let reloads {
      all.append(ReloadService(signals: reloads, proxyStands: proxyStands, reload: reload))
    }
    // Services stop in reverse order: the proxy first, so that the probes report its stop.
    all.append(proxy)
    try await ServiceGroup(
      configuration: .init(
        services: all.map {
          .init(service: NamedService(service: $0), successTerminationBehavior: .gracefullyShutdownGroup)
        },
        gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet)
    ).run()
  }

  /// The logger of the service lifecycle, whose own entries repeat the error that ends the process.
  private var quiet: Logger {
    var quiet = logger
    quiet.logLevel = .critical
    return quiet
  }
}

extension ProgramServices {
  /// The function that takes changed files into use, besides those of the listeners.
  private func fileRenewal(with adminTokens: AdminTokens) -> @Sendable () -> Void {
    { [backendTLS, logger, tokens = parts.tokens] in
      backendTLS.renew(logger: logger)
      tokens.renew()
      adminTokens.renew(logger: logger)
    }
  }

  private func makeBackends() -> [HTTPUpstream] {
    let faults = BackendFaults(upstreams: Array(settings.upstreams.keys))
    let backends = parts.contexts.map {
      HTTPUpstream(
        context: $0, loops: parts.contexts.count, logger: logger, faults: faults,
        unreached: unreached, tls: backendTLS)
    }
    metrics.addSource(faults)
    metrics.addSource(Array(zip(parts.contexts, backends)))
    return backends
  }

  private func makeServer(on backends: [HTTPUpstream]) -> Server {
    let environment = ProxyEnvironment(
      counters: metrics.counters, tracer: log.tracer, identityKey: identityKey,
      sealsResponses: settings.store.encryption != nil, digests: parts.digests, node: parts.node,
      known: parts.known, takeOvers: parts.takeOvers, mismatches: parts.mismatches,
      probe: BackendProbe(logger: logger), journal: parts.journal, losses: parts.losses, logger: logger)
    let snapshot = makeSnapshot(of: settings)
    let workers = parts.contexts.indices.map { index in
      Worker(
        context: parts.contexts[index], store: store.records[index], backend: backends[index],
        environment: environment, configuration: snapshot, metrics: metrics.loops[index])
    }
    return ProxyServer(workers: workers, environment: environment, group: parts.group)
  }

  private func makeProxy(
    _ server: Server, after adminStands: ListeningGate, _ renewFiles: @escaping @Sendable () -> Void
  ) throws -> ProxyService<Records, HTTPUpstream> {
    ProxyService(
      server: server, listeners: try settings.listen.map(Listener.init),
      stopDurations: StopDurations(settings),
      onBound: { [enter = store.enter] in
        try await adminStands.opened()
        try await enter()
      },
      onListening: { [proxyStands, onListening] in
        proxyStands.open()
        onListening()
      }, renewFiles: renewFiles, logger: logger)
  }

  private func makeReload(
    of file: ConfigurationFile, _ server: Server, _ backends: [HTTPUpstream],
    _ proxy: ProxyService<Records, HTTPUpstream>, _ renewFiles: @escaping @Sendable () -> Void
  ) -> ConfigurationReload {
    ConfigurationReload(
      of: file, counters: metrics.counters, logger: logger,
      check: { [namespace = store.namespace] in await namespace.adopt($0) }
    ) { [self] settings in
      await parts.tokens.adopt(settings)
      await server.adopt(makeSnapshot(of: settings))
      for (context, backend) in zip(parts.contexts, backends) {
        try? await context.loop.submit { backend.adopt(settings.upstreams) }.get()
      }
      server.reloadCertificates()
      renewFiles()
      proxy.adopt(StopDurations(settings))
      log.threshold.level = Logger.Level(settings.log.level)
      await store.namespace.endReload()
    }
  }

  /// Returns the configuration snapshot for the event loops, at start and at each reload.
  private func makeSnapshot(of settings: Settings) -> ConfigurationSnapshot {
    ConfigurationSnapshot(
      routes: RouteTable(settings.routes, number: metrics.number(ofRoute:)), fallback: settings.onlyUpstream,
      limits: parts.limits(of: settings),
      accessLog: AccessLog(
        sink: log.sink, format: LogFormat(settings.log.format),
        isEnabled: settings.log.access,
        replaySample: settings.log.replaySample),
      trustedProxies: settings.trustedProxies, unmatchedKeys: settings.unmatchedKeys,
      passesUnderscores: settings.underscores == .pass,
      policy: settings.policyDocument == .on
        ? PolicyDocument(settings.routes, page: settings.policyPage) : nil,
      tokens: parts.tokens.verifier)
  }

  /// Returns the admin listener and the count of open records that its metrics page shows; none without `admin`.
  private func adminServices(
    _ proxy: ProxyService<Records, HTTPUpstream>, _ reload: ConfigurationReload?, _ stands: ListeningGate,
    _ tokens: AdminTokens
  ) -> [any Service] {
    guard let admin = settings.admin else { return [] }
    let live: @Sendable () async -> Settings = { [settings] in await reload?.settings ?? settings }
    let recordAdmin = RecordAdmin(
      store: store.records[0], context: parts.contexts[0], invalidations: store.invalidations,
      identityKey: identityKey, routes: { await live().routes },
      onChange: { [known = parts.known] id, change in
        switch change {
        case .freed: known.remove(id)
        case .ended(let completion): known.end(id, for: completion.lifetime)
        }
      },
      lastMismatch: { [mismatches = parts.mismatches] in
        mismatches.last(of: $0).map { (at: $0.at, differs: $0.differs) }
      }, onLapse: noteLapse, journal: parts.journal, digests: parts.digests, node: parts.node,
      audit: log.audit)
    let openRecords = OpenRecordCounter(recordAdmin: recordAdmin, board: store.board)
    metrics.source { openRecords.figures }
    metrics.source { [MetricFigure(.bodyLimit, await live().limits.bodyMemory)] }
    let console = makeConsole(admin.ui, recordAdmin)
    let server = AdminServer(
      host: admin.host, port: admin.port, names: admin.hosts,
      access: tokens.access, metrics: metrics,
      readiness: makeReadiness(of: proxy, live), configuration: { await reload?.status },
      surroundings: makeSurroundings(live), recordAdmin: recordAdmin, settings: { await live().shownJSON },
      console: console, onListening: { stands.open() }, logger: logger)
    return [openRecords] + (console.map { [$0] } ?? []) + [server]
  }

  private func makeConsole(_ settings: ConsoleSettings, _ recordAdmin: RecordAdmin) -> Console? {
    guard settings.isOn else { return nil }
    return Console(
      operate: settings.operate, bodies: settings.bodies, basePath: settings.basePath,
      recordAdmin: recordAdmin,
      metrics: metrics)
  }

  /// Logs and counts a record that was lost with its owner, which is found by a walk through the store.
  private var noteLapse: @Sendable (RecordView) -> Void {
    { [losses = parts.losses, metrics, context = parts.contexts[0]] record in
      guard losses.noteLapse(record) else { return }
      let route = metrics.knownNumber(ofRoute: record.attribution?.route ?? "")
      // Only its own loop writes the row.
      context.loop.execute { metrics.loops[0].add(.outcomesLost, route: route) }
    }
  }

  /// Returns the function of the store, the tokens' keys and the upstreams as `/readyz` shows them, a line each.
  private func makeSurroundings(
    _ live: @escaping @Sendable () async -> Settings
  ) -> @Sendable () async -> [String] {
    { [store = store.readiness, tokens = parts.tokens, unreached] in
      var lines = store.lines + tokens.lines
      for name in await live().upstreams.keys.sorted() { lines.append(unreached.line(of: name)) }
      return lines
    }
  }

  /// Returns the readiness that `/readyz` reports: of the proxy, then of the store, then of the namespace.
  private func makeReadiness(
    of proxy: ProxyService<Records, HTTPUpstream>, _ live: @escaping @Sendable () async -> Settings
  ) -> @Sendable () async -> Readiness {
    { [store = store.readiness, namespace = store.namespace] in
      let own = await proxy.readiness
      guard own == .ready else { return own }
      let verdict = store.verdict(await live().readiness)
      return verdict == .ready ? namespace.readiness : verdict
    }
  }
}

extension UnreachedBackends {
  fileprivate func line(of upstream: String) -> String {
    let failure = failure(of: upstream).map {
      ": not reached at \(Timestamp.text(milliseconds: $0.time)): \($0.reason)"
    }
    return "upstream \(upstream)" + (failure ?? "")
  }
}

/// A service that its group knows by its type. The group describes services, which without this writes down all that
/// they hold: a tenth of a start.
private struct NamedService: Service, CustomStringConvertible {
  let service: any Service

  var description: String { "\(type(of: service))" }

  func run() async throws { try await service.run() }
}

/// The event that a listener accepts connections, for the one task that waits for it.
struct ListeningGate: Sendable {
  private let moments: AsyncStream<Void>
  private let end: AsyncStream<Void>.Continuation

  /// - Parameter isNeeded: False if there is no such listener, so that nobody waits.
  init(isNeeded: Bool) {
    (moments, end) = AsyncStream.makeStream()
    if !isNeeded { open() }
  }

  func open() { end.finish() }

  /// Waits until the listener accepts connections. Throws if the start has failed meanwhile.
  func opened() async throws {
    for await _ in moments {}
    try Task.checkCancellation()
  }
}
