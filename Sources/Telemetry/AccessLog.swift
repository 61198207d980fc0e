/// One line a request: what became of it, and how long its parts took. Never a key, a token or a body.
package struct AccessRecord: Sendable {
  package var route: String?
  package var method = ""
  package var status = 0
  /// `executed`, `replayed`, `passed`, or the code of a refusal.
  package var outcome = ""
  package var attempt = 0
  /// The first characters of a digest, empty where there is none.
  package var keyDigest = ""
  package var callerDigest = ""
  package var requestBytes = 0
  package var responseBytes = 0
  /// From the head's arrival to the answer's end, in microseconds; of it, asking the store and the backend.
  package var totalMicroseconds: Int64 = 0
  package var claimMicroseconds: Int64 = 0
  package var upstreamMicroseconds: Int64 = 0
  package var recordMicroseconds: Int64 = 0
  package var hungUp = false

  package init() {}
}

/// Writes the access log.
package struct AccessLog: Sendable {
  private let sink: LogSink
  private let format: LogFormat
  package let isEnabled: Bool

  package init(sink: LogSink, format: LogFormat, isEnabled: Bool) {
    self.sink = sink
    self.format = format
    self.isEnabled = isEnabled
  }

  package func write(_ record: AccessRecord) {
    guard isEnabled else { return }
    var line = LogLine(format: format)
    line.add("time", Timestamp.now())
    line.add("level", "info")
    line.add("message", "request")
    if let route = record.route { line.add("route", route) }
    line.add("method", record.method)
    line.add("status", record.status)
    line.add("outcome", record.outcome)
    if record.attempt > 0 { line.add("attempt", record.attempt) }
    if !record.keyDigest.isEmpty { line.add("key", record.keyDigest) }
    if !record.callerDigest.isEmpty { line.add("caller", record.callerDigest) }
    line.add("request_bytes", record.requestBytes)
    line.add("response_bytes", record.responseBytes)
    line.add("duration_ms", microseconds: record.totalMicroseconds)
    if record.claimMicroseconds > 0 { line.add("claim_ms", microseconds: record.claimMicroseconds) }
    if record.upstreamMicroseconds > 0 { line.add("upstream_ms", microseconds: record.upstreamMicroseconds) }
    if record.recordMicroseconds > 0 { line.add("record_ms", microseconds: record.recordMicroseconds) }
    if record.hungUp { line.add("hung_up", "true") }
    sink.write(line.end())
  }
}
