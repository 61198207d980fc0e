import CoreMetrics
import Telemetry

protocol WayOfCounting: Sendable {
  func count(_ record: borrowing AccessLogEntry, thread: Int)
}

/// As Semel does: each event loop in rows of its own.
struct Rows: WayOfCounting {
  private let metrics: Metrics

  init(threads: Int) { metrics = Metrics(loops: threads) }

  func count(_ record: borrowing AccessLogEntry, thread: Int) { metrics.loops[thread].ended(record) }
}

/// The same figures by swift-metrics' handlers, made once and shared.
struct Handlers: WayOfCounting {
  private let durations = RequestOutcome.allCases.map {
    Timer(label: "request.duration", dimensions: [("route", "orders"), (RequestOutcome.key, $0.text)])
  }
  private let parts = RequestPart.allCases.map {
    Timer(label: "request.part.duration", dimensions: [("route", "orders"), (RequestPart.key, $0.text)])
  }
  private let replays = ReplaySource.allCases.map {
    Counter(label: "replays", dimensions: [("route", "orders"), (ReplaySource.key, $0.text)])
  }
  private let timeToSuccess = Timer(label: "time.to.success", dimensions: [("route", "orders")])
  private let requestBytes = Counter(label: "request.bytes", dimensions: [("route", "orders")])
  private let responseBytes = Counter(label: "response.bytes", dimensions: [("route", "orders")])

  func count(_ record: borrowing AccessLogEntry, thread: Int) {
    durations[record.outcome.rawValue].recordMicroseconds(record.totalMicroseconds ?? 0)
    requestBytes.increment(by: record.requestBytes)
    responseBytes.increment(by: record.responseBytes)
    if let source = record.source { replays[source.rawValue].increment() }
    record.forEachPart { parts[$0.rawValue].recordMicroseconds($1) }
    if let time = record.timeToSuccessMilliseconds { timeToSuccess.recordMilliseconds(time) }
  }
}

/// The same figures by handlers that are asked for where something is counted, as most code does.
struct LookUps: WayOfCounting {
  func count(_ record: borrowing AccessLogEntry, thread: Int) {
    let route = ("route", "orders")
    Timer(label: "request.duration", dimensions: [route, (RequestOutcome.key, record.outcome.text)])
      .recordMicroseconds(record.totalMicroseconds ?? 0)
    Counter(label: "request.bytes", dimensions: [route]).increment(by: record.requestBytes)
    Counter(label: "response.bytes", dimensions: [route]).increment(by: record.responseBytes)
    if let source = record.source {
      Counter(label: "replays", dimensions: [route, (ReplaySource.key, source.text)]).increment()
    }
    record.forEachPart { part, microseconds in
      Timer(label: "request.part.duration", dimensions: [route, (RequestPart.key, part.text)])
        .recordMicroseconds(microseconds)
    }
    if let time = record.timeToSuccessMilliseconds {
      Timer(label: "time.to.success", dimensions: [route]).recordMilliseconds(time)
    }
  }
}

extension AccessLogEntry {
  /// Hands over each part that took time.
  @inline(__always)
  fileprivate func forEachPart(_ body: (RequestPart, Int64) -> Void) {
    if let claimMicroseconds { body(.claim, claimMicroseconds) }
    if let upstreamMicroseconds { body(.backend, upstreamMicroseconds) }
    if let recordMicroseconds { body(.record, recordMicroseconds) }
  }
}
