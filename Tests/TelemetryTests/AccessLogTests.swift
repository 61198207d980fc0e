import Glibc
import Idempotency
import Testing

@testable import Telemetry

/// The entries of the access log.
struct AccessLogTests {
  /// The line of an entry, without its time.
  private static func line(of entry: borrowing AccessLogEntry, _ format: LogFormat) throws -> String {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    let sink = LogSink(descriptor: ends[1])
    var line = LogLine(format: format)
    let log = AccessLog(sink: sink, format: format, isEnabled: true)
    #expect(!log.write(entry, now: 1, in: &line))
    #expect(sink.flush(within: 20))
    close(ends[1])
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = read(ends[0], &bytes, bytes.count)
    close(ends[0])
    let text = String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
    return text.replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/, with: "TIME", maxReplacements: 1)
  }

  private static func replayed() throws -> AccessLogEntry {
    var entry = AccessLogEntry()
    entry.route = "create-order"
    entry.pathTemplate = "/v1/orders/{id}"
    entry.client = "192.0.2.1"
    entry.method = "PO\"ST"
    entry.status = 201
    entry.outcome = .replayed
    entry.source = .cache
    entry.attempt = 2
    entry.keyDigest = "0011aabb"
    entry.callerDigest = "ccdd2233"
    entry.recordID = RecordID(try #require(Digest256(repeatElement(0, count: 32))))
    entry.requestBytes = 48
    entry.responseBytes = 306
    entry.totalMicroseconds = 1234
    entry.claimMicroseconds = 56
    entry.trace = RequestTrace(context: TraceContext(traceHigh: 1, traceLow: 2, span: 3, isSampled: true))
    entry.hungUp = true
    return entry
  }

  @Test func `have their members in one order, as JSON`() throws {
    let id = String(repeating: "A", count: 43)
    let trace = "00000000000000010000000000000002"
    let line = try Self.line(of: Self.replayed(), .json)
    #expect(
      line == #"{"time":"TIME","level":"info","message":"request","#
        + #""route":"create-order","path":"/v1/orders/{id}","client":"192.0.2.1","method":"PO\"ST","status":201,"#
        + #""outcome":"replayed","source":"cache","attempt":2,"key":"0011aabb","caller":"ccdd2233","#
        + #""record":"\#(id)","request_bytes":48,"response_bytes":306,"duration_ms":1.234,"claim_ms":0.056,"#
        + #""trace_id":"\#(trace)","hung_up":"true"}"# + "\n")
  }

  @Test func `have their members in one order, as pairs`() throws {
    let line = try Self.line(of: AccessLogEntry(), .text)
    #expect(
      line == #"time="TIME" level="info" message="request" method="" status=0 "#
        + #"outcome="cut" request_bytes=0 response_bytes=0 duration_ms=0.000"# + "\n")
  }
}
