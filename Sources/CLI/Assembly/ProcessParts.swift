import Admin
import CoreMetrics
import Foundation
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

struct ProgramLog {
  let sink: LogSink
  /// The level from which entries are written. A reload may change it.
  let threshold: LogThreshold
  let logger: Logger
  /// The logger of operators' changes, which are written whatever the level.
  let audit: Logger
  let tracer: Tracer?

  init(_ settings: Settings) {
    let format = LogFormat(settings.log.format)
    let (sink, threshold) = (LogSink(format: format), LogThreshold(Logger.Level(settings.log.level)))
    self.sink = sink
    self.threshold = threshold
    let logger = Logger(label: "semel") {
      StructuredLogHandler(label: $0, threshold: threshold, format: format, sink: sink)
    }
    self.logger = logger
    tracer = settings.tracing.map { Tracer($0, logger: logger) }
    audit = Logger(label: "semel") {
      StructuredLogHandler(label: $0, threshold: LogThreshold(.notice), format: format, sink: sink)
    }
  }

  func flush() { sink.flush() }

  func close() {
    tracer?.close()
    sink.flush()
  }
}

/// The parts of the process that do not depend on its store.
struct ProcessParts {
  let group: MultiThreadedEventLoopGroup
  let contexts: [EventLoopContext]
  let metrics: Metrics
  let digests: LogDigests
  /// The name of this process among the nodes of its store.
  let node = Attribution.nodeName(ProcessInfo.processInfo.hostName)
  let known = KnownRecords()
  let takeOvers: TakeOverPause
  let mismatches = MismatchNotes()
  let tokens: TokenServices
  let losses: LossLog
  /// The latest requests for operators; `nil` without an admin listener to read them by.
  let journal: RequestJournal?
  private let failures: StoreFailureLog
  private let descriptors: Int

  /// Creates the parts of the one process. A metrics system can be set only once.
  ///
  /// - Parameter descriptors: The number of files and sockets that the process may have open.
  init(_ settings: Settings, _ log: ProgramLog, descriptors: Int) {
    self.descriptors = descriptors
    group = MultiThreadedEventLoopGroup(
      numberOfThreads: settings.workers > 0 ? settings.workers : System.coreCount)
    contexts = group.makeIterator().map { EventLoopContext(loop: $0) }
    if let warning = DescriptorLimit.warning(of: settings, loops: contexts.count, limit: descriptors) {
      log.logger.warning("\(warning)")
    }
    metrics = Metrics(loops: contexts.count)
    takeOvers = TakeOverPause(callTime: settings.store.timeout)
    // Before any library creates a metric.
    MetricsSystem.bootstrap(metrics.registry)
    metrics.addSource(log.sink)
    metrics.addSource(log.tracer)
    digests = LogDigests(secret: settings.store.idSecret)
    tokens = TokenServices(logger: log.logger)
    losses = LossLog(logger: log.logger)
    journal = settings.admin == nil ? nil : RequestJournal()
    metrics.source { [tokens] in tokens.figures }
    failures = StoreFailureLog(logger: log.logger)
  }

  /// The limits of a configuration, as far as the process may open files.
  func limits(of settings: Settings) -> LimitSettings {
    var limits = settings.limits
    limits.maxConnections = DescriptorLimit.maxConnections(
      of: settings, loops: contexts.count, limit: descriptors)
    return limits
  }

  /// Returns the secret of the digests that a store keeps; `nil` where one is configured.
  func logSecret(in facts: any NamespaceFacts) -> LogSecret? {
    digests.isShared ? nil : LogSecret(facts: facts, digests: digests)
  }

  /// Returns the record stores of the event loops: the given ones, measured, behind the process's one cache.
  func records<Records: RecordStore>(
    over stores: [Records], _ cache: LocalCache
  ) -> [CachedStore<MeasuredStore<Records>>] {
    stores.enumerated().map { index, store in
      let measured = MeasuredStore(
        store, metrics: metrics.loops[index], failures: failures, takeOvers: takeOvers)
      return CachedStore(measured, cache: cache)
    }
  }
}

/// A store, and everything that the other parts of the program need of it.
struct AssembledStore<Records: RecordStore> {
  let records: [Records]
  let facts: any NamespaceFacts
  let namespace: NamespaceGuard
  let readiness: StoreReadiness
  /// The secret of the digests that the store keeps; `nil` where one is configured.
  let logSecret: LogSecret?
  var services: [any Service] = []
  /// The place where nodes share their counts of open records; `nil` if the store belongs to this process alone.
  var board: (any OpenRecordBoard)?
  /// The way to the caches of other nodes; `nil` if the store belongs to this process alone.
  var invalidations: (any CacheInvalidations)?
  /// Registers a call for each time that all live claims should be renewed at once.
  var onAlarm: @Sendable (_ alarm: @escaping @Sendable () -> Void) -> Void = { _ in }
  /// Enters the configuration in its namespace. Called once every address is bound.
  let enter: @Sendable () async throws -> Void
}

/// The sources of the metrics page for numbers that other parts of the program keep.
extension Metrics {
  func addSource(_ sink: LogSink) {
    source {
      [MetricFigure(.build, 1, ("version", Version.text)), MetricFigure(.logDropped, sink.dropped)]
    }
  }

  func addSource(_ tracer: Tracer?) {
    guard let tracer else { return }
    source { tracer.figures }
  }

  func addSource(_ cache: LocalCache) {
    source {
      let statistics = cache.statistics
      return [
        MetricFigure(.cacheHits, statistics.hits), MetricFigure(.cacheMisses, statistics.misses),
        MetricFigure(.cacheEvictions, statistics.evictions),
        MetricFigure(.cacheEntries, statistics.entries), MetricFigure(.cacheBytes, statistics.bytes),
      ]
    }
  }

  func addSource(_ codec: OutcomeCodec) {
    source {
      let bytes = codec.compressedBytes
      return [
        MetricFigure(.storeCompressedBytes, bytes.plain, ("form", "plain")),
        MetricFigure(.storeCompressedBytes, bytes.stored, ("form", "stored")),
      ]
    }
  }

  func addSource(_ store: EmbeddedStore) {
    source {
      let figures = store.figures
      return [
        MetricFigure(.storeRoundTrips, figures.commits), MetricFigure(.storeSwept, figures.swept),
        MetricFigure(.storeConnections, 1), MetricFigure(.storeReconnects, 0),
        MetricFigure(.storeUp, figures.isAvailable ? 1 : 0), MetricFigure(.storeFailovers, 0),
        MetricFigure(.storeSuspects, 0), MetricFigure(.storeSweepFailures, figures.sweepFailures),
        MetricFigure(.storeFile, figures.databaseBytes, ("part", "database")),
        MetricFigure(.storeFile, figures.freeBytes, ("part", "free")),
        MetricFigure(.storeFile, figures.logBytes, ("part", "log")),
        MetricFigure(.storeDoubts, 0), MetricFigure(.storeLosses, figures.losses),
      ]
    }
  }

  func addSource(_ subscriber: RedisSubscriber) {
    source {
      [
        MetricFigure(.storeDoubts, subscriber.doubtsStanding),
        MetricFigure(.storeLosses, subscriber.lossCount),
        MetricFigure(.storeFailovers, subscriber.failovers),
      ]
    }
  }

  func addSource(_ connections: [RedisCounters]) {
    source {
      [
        MetricFigure(.storeRoundTrips, connections.reduce(0) { $0 + $1.roundTrips }),
        MetricFigure(.storeConnections, connections.reduce(0) { $0 + $1.connections }),
        MetricFigure(.storeReconnects, connections.reduce(0) { $0 + $1.reconnections }),
        MetricFigure(.storeUp, connections.reduce(0) { $0 + $1.usable }),
        MetricFigure(.storeSuspects, connections.reduce(0) { $0 + $1.suspects }),
        MetricFigure(.storeSwept, 0),
      ] + Self.redirects(of: connections) + Self.nodes(of: connections)
    }
  }

  private static func redirects(of connections: [RedisCounters]) -> [MetricFigure] {
    var counts: [String: Int] = [:]
    for (kind, count) in connections.flatMap(\.redirects) { counts[kind, default: 0] += count }
    return counts.sorted { $0.key < $1.key }.map { MetricFigure(.storeRedirects, $0.value, ("kind", $0.key)) }
  }

  private static func nodes(of connections: [RedisCounters]) -> [MetricFigure] {
    var sums: [String: (replies: Int, seconds: Double)] = [:]
    for node in connections.flatMap(\.nodes) {
      let sum = sums[node.name] ?? (0, 0)
      sums[node.name] = (sum.replies + node.replies, sum.seconds + node.seconds)
    }
    return sums.sorted { $0.key < $1.key }.flatMap { name, sum in
      [
        MetricFigure(.storeNodeReplies, sum.replies, ("node", name)),
        MetricFigure(.storeNodeSeconds, sum.seconds, ("node", name)),
      ]
    }
  }

  func addSource(_ faults: BackendFaults) {
    let families: [(BackendFaults.Kind, MetricFamily)] = [
      (.strayBytes, .upstreamStrayCloses), (.malformedResponse, .upstreamMalformedResponses),
    ]
    for (kind, family) in families {
      source { faults.counts(of: kind).map { MetricFigure(family, $0.count, ("upstream", $0.upstream)) } }
    }
  }

  func addSource(_ backends: [(EventLoopContext, HTTPUpstream)]) {
    source {
      var all: [UpstreamCounters] = []
      for (context, backend) in backends {
        if let own = try? await context.loop.submit({ backend.counters }).get() { all.append(own) }
      }
      return [
        MetricFigure(.upstreamConnects, all.reduce(0) { $0 + $1.connects }),
        MetricFigure(.upstreamSends, all.reduce(0) { $0 + $1.sends }),
        MetricFigure(.upstreamRetries, all.reduce(0) { $0 + $1.retries }),
      ]
    }
  }
}
