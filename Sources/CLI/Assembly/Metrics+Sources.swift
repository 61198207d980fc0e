import NIOCore
import Platform
import Store
import Telemetry
import Transport

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
