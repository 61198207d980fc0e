import Synchronization

/// Writes one entry per request to the access log.
public struct AccessLog: Sendable {
  private let sink: LogSink
  private let format: LogFormat
  /// Whether any entry is written.
  public let isEnabled: Bool
  /// The sampling interval of replays: one of this many is written. 0 writes none.
  private let replaySample: Int
  private let replays = ReplayCount()

  /// Creates an access log.
  ///
  /// - Parameter replaySample: The sampling interval of replays: one of this many is written, and 0 writes none.
  ///   Requests with any other outcome are always written.
  public init(sink: LogSink, format: LogFormat, isEnabled: Bool, replaySample: Int = 1) {
    self.sink = sink
    self.format = format
    self.isEnabled = isEnabled
    self.replaySample = replaySample
  }

  /// Writes the entry of an ended request, unless the log is disabled or sampling omits it.
  public func write(_ record: AccessRecord) {
    guard isEnabled, isWanted(record) else { return }
    var line = LogLine(format: format)
    line.add("time", Timestamp.now())
    line.add("level", "info")
    line.add("message", "request")
    if let route = record.route { line.add("route", route) }
    if !record.client.isEmpty { line.add("client", record.client) }
    line.add("method", record.method)
    line.add("status", record.status)
    line.add("outcome", record.outcome.text)
    if let refusal = record.refusal { line.add("reason", refusal.text) }
    if let source = record.source { line.add("source", source.text) }
    if record.attempt > 0 { line.add("attempt", record.attempt) }
    if !record.keyDigest.isEmpty { line.add("key", record.keyDigest) }
    if !record.callerDigest.isEmpty { line.add("caller", record.callerDigest) }
    if !record.recordID.isEmpty { line.add("record", record.recordID) }
    line.add("request_bytes", record.requestBytes)
    line.add("response_bytes", record.responseBytes)
    line.add("duration_ms", microseconds: record.totalMicroseconds)
    if record.claimMicroseconds > 0 { line.add("claim_ms", microseconds: record.claimMicroseconds) }
    if record.upstreamMicroseconds > 0 { line.add("upstream_ms", microseconds: record.upstreamMicroseconds) }
    if record.recordMicroseconds > 0 { line.add("record_ms", microseconds: record.recordMicroseconds) }
    if let trace = record.trace { line.add("trace_id", trace.context.traceText) }
    if record.hungUp { line.add("hung_up", "true") }
    if record.outcome == .replayed, replaySample > 1 { line.add("sample", replaySample) }
    sink.write(line.end())
  }

  private func isWanted(_ record: AccessRecord) -> Bool {
    guard record.outcome == .replayed, replaySample != 1 else { return true }
    return replaySample > 0 && replays.next() % replaySample == 0
  }
}

/// The number of replays so far, which decides the sampling.
private final class ReplayCount: Sendable {
  private let count = Atomic<Int>(0)

  func next() -> Int { count.wrappingAdd(1, ordering: .relaxed).oldValue }
}
