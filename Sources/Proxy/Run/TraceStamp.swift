import Idempotency
import NIOCore
import Telemetry
import Wire

/// The trace in which a recorded response first ran: written behind the response's own fields, and taken off before it is
/// replayed. So neither store has to know of it, and a record without one is as before.
enum TraceStamp {
  private static let name: StaticString = "Idempotency-Trace: "
  private static let length = name.utf8CodeUnitCount + TraceContext.textLength + 2

  /// Marks a response that is kept, where its request is traced.
  static func put(_ trace: RequestTrace?, on outcome: Outcome) -> Outcome {
    guard let trace, trace.isExported, case .kept(let response) = outcome else { return outcome }
    var fields = response.fields
    fields.writeStaticString(name)
    fields.writeString(trace.context.text)
    fields.writeStaticString("\r\n")
    return .kept(
      RecordedResponse(
        status: response.status, fields: fields, body: response.body, trailers: response.trailers))
  }

  /// Takes the mark off, where there is one, and gives what reads it: most replays are not traced.
  static func take(from response: inout RecordedResponse) -> (() -> TraceContext?)? {
    var fields = response.fields
    let start = fields.readableBytes - length
    guard start >= 0 else { return nil }
    let isThere = fields.withUnsafeReadableBytes { bytes in
      // The last line begins here: after a line's end, or as the only one.
      (start == 0 || bytes[start - 1] == ASCII.lineFeed)
        && UnsafeRawBufferPointer(rebasing: bytes[start..<start + name.utf8CodeUnitCount]).elementsEqual(
          UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }
    guard isThere, let own = fields.readSlice(length: start) else { return nil }
    let stamp = fields
    response = RecordedResponse(
      status: response.status, fields: own, body: response.body, trailers: response.trailers)
    return {
      stamp.withUnsafeReadableBytes { bytes in
        TraceContext(
          UnsafeRawBufferPointer(
            rebasing: bytes[name.utf8CodeUnitCount..<name.utf8CodeUnitCount + TraceContext.textLength]))
      }
    }
  }
}
