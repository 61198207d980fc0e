import Idempotency
import NIOCore
import Telemetry
import Testing

@testable import Proxy

struct TraceStampTests {
  private static let foreign =
    "Idempotency-Trace: 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01\r\n"

  private static func response(_ fields: String) -> RecordedResponse {
    RecordedResponse(status: 201, fields: ByteBuffer(string: fields), body: ByteBuffer())
  }

  @Test func `a stamp is taken off again, and tells the trace`() throws {
    let context = TraceContext(traceHigh: 1, traceLow: 2, span: 3, isSampled: true)
    var trace = RequestTrace(context: context)
    trace.isExported = true
    guard case .whole(var stamped) = TraceStamp.put(trace, on: .whole(Self.response("A: b\r\n"))) else {
      Issue.record("a stamped response is whole")
      return
    }
    #expect(stamped != Self.response("A: b\r\n"))
    let taken = try #require(TraceStamp.take(from: &stamped))
    #expect(taken() == context && stamped == Self.response("A: b\r\n"))
  }

  @Test func `a backend's own field of the name is not recorded where a replay would take it for the stamp`()
  {
    for fields in ["A: b\r\n\(Self.foreign)", "A: b\r\n\(Self.foreign)\(Self.foreign)"] {
      #expect(TraceStamp.put(nil, on: .whole(Self.response(fields))) == .whole(Self.response("A: b\r\n")))
    }
  }
}
