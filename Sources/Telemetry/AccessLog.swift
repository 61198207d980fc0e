import Idempotency
import Synchronization

/// Writes one entry per request to the access log.
public struct AccessLog: Sendable {
  private let sink: LogSink
  private let format: LogFormat
  /// Whether any entry is written.
  public let isEnabled: Bool
  /// The sampling interval of replays.
  private let replaySample: Int
  private let replays = ReplayCount()
  private let refusals = Refusals()

  /// - Parameter replaySample: The sampling interval of replays: one of this many is written, and 0 writes none.
  public init(sink: LogSink, format: LogFormat, isEnabled: Bool, replaySample: Int = 1) {
    self.sink = sink
    self.format = format
    self.isEnabled = isEnabled
    self.replaySample = replaySample
  }

  /// Writes the entry of an ended request, unless the log is disabled, sampling omits it, or too many come from
  /// strangers.
  ///
  /// - Parameters:
  ///   - now: The time of a monotonic clock, in nanoseconds.
  ///   - line: The caller's memory in which the entry is formatted.
  /// - Returns: Whether to call `writeLeftOut` in a second.
  public func write(
    _ entry: borrowing AccessLogEntry, now: @autoclosure () -> UInt64, in line: inout LogLine
  ) -> Bool {
    guard isEnabled, isWanted(entry) else { return false }
    if let reason = entry.refusal, entry.outcome == .refused, entry.callerDigest == nil,
      case .leaveOut(let isFirst) = refusals.pace.withLock({ [now = now()] in $0.count(reason, now: now) })
    {
      return isFirst
    }
    write(entry, in: &line)
    return false
  }

  /// Writes the numbers of the entries that were left out.
  public func writeLeftOut() {
    for (reason, count) in refusals.pace.withLock({ $0.takeLeftOut() }) {
      var line = LogLine(format: format)
      line.addTime()
      line.add("level", "info")
      line.add("message", "refused requests left out")
      line.add("reason", reason.text)
      line.add("count", count)
      sink.write(line.end())
    }
  }

  private func write(_ entry: borrowing AccessLogEntry, in line: inout LogLine) {
    line.restart(as: format)
    line.addTime()
    line.add("level", "info")
    line.add("message", "request")
    if let route = entry.route { line.add("route", route) }
    if let template = entry.pathTemplate { line.add("path", template) }
    if let client = entry.client { line.add("client", client) }
    line.add("method", entry.method ?? "")
    line.add("status", entry.status ?? 0)
    line.add("outcome", entry.outcome.text)
    addDetails(of: entry, to: &line)
    line.add("request_bytes", entry.requestBytes)
    line.add("response_bytes", entry.responseBytes)
    line.add("duration_ms", microseconds: entry.totalMicroseconds ?? 0)
    if let time = entry.claimMicroseconds { line.add("claim_ms", microseconds: time) }
    if let time = entry.upstreamMicroseconds { line.add("upstream_ms", microseconds: time) }
    if let time = entry.recordMicroseconds { line.add("record_ms", microseconds: time) }
    if let trace = entry.trace { line.add("trace_id", traceOf: trace.context) }
    if entry.hungUp { line.add("hung_up", "true") }
    if entry.outcome == .replayed, replaySample > 1 { line.add("sample", replaySample) }
    sink.write(line.end())
  }

  private func addDetails(of entry: borrowing AccessLogEntry, to line: inout LogLine) {
    if let refusal = entry.refusal { line.add("reason", refusal.text) }
    if let loss = entry.loss { line.add("cause", loss.rawValue) }
    if let differs = entry.differs { line.add("differs", differs) }
    if let would = entry.would { line.add("would", would.text) }
    if let source = entry.source { line.add("source", source.text) }
    if let attempt = entry.attempt { line.add("attempt", attempt) }
    if let digest = entry.keyDigest { line.add("key", digest) }
    if let digest = entry.callerDigest { line.add("caller", digest) }
    if let id = entry.recordID { line.add("record", id) }
    if let items = entry.items { line.add("items", items) }
    if let ids = entry.itemRecords { line.add("records", ids) }
  }

  private func isWanted(_ entry: borrowing AccessLogEntry) -> Bool {
    guard entry.outcome == .replayed, replaySample != 1 else { return true }
    return replaySample > 0 && replays.next() % replaySample == 0
  }
}

private final class Refusals: Sendable {
  let pace = Mutex(RefusalPace())
}

private final class ReplayCount: Sendable {
  private let count = Atomic<Int>(0)

  func next() -> Int { count.wrappingAdd(1, ordering: .relaxed).oldValue }
}
