import Idempotency
import NIOCore
import Telemetry
import Wire

/// The trace in which a recorded response first ran. It is written behind the response's own fields and removed before
/// a replay, so that the stores need not know of it and records without it stay valid.
enum TraceStamp {
  private static let name: StaticString = "Idempotency-Trace: "
  private static let length = name.utf8CodeUnitCount + TraceContext.textLength + 2

  /// Adds the stamp to a response that is kept, if its request is traced. A field of the backend's own that looks like a
  /// stamp is left out, since a replay would take it for one.
  static func put(_ trace: RequestTrace?, on outcome: Outcome) -> Outcome {
    guard case .whole(var response) = outcome else { return outcome }
    while take(from: &response) != nil {}
    guard let trace, trace.isExported else { return .whole(response) }
    var fields = response.fields
    fields.writeLiteral(name)
    fields.writeString(trace.context.text)
    fields.writeLiteral("\r\n")
    return .whole(
      RecordedResponse(
        status: response.status, fields: fields, body: response.body, trailers: response.trailers))
  }

  /// Removes the stamp, and returns a function that parses it; `nil` if there is none. Most replays are not traced, and
  /// need no parsing.
  static func take(from response: inout RecordedResponse) -> (() -> TraceContext?)? {
    var fields = response.fields
    let start = fields.readableBytes - length
    guard start >= 0 else { return nil }
    let isThere = fields.withUnsafeReadableBytes { bytes in
      // The stamp is a whole line: the only one, or behind the end of another.
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
