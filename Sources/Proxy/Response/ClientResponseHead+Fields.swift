import Idempotency
import NIOCore
import Platform
import Wire

extension ClientResponseHead {
  /// Fields of a backend's response that never reach a client: framing, which is made anew, Semel's own response
  /// fields, and those by which a backend steers.
  static let droppedFromResponses: FieldNameSet = FieldNameSet(
    .contentLength, .idempotencyStatus, .idempotentReplayed, .idempotencyRecordedAt, .idempotencyExpires,
    .idempotencyOutcome, .idempotencyRetention)

  /// Fields that are never recorded, beyond these.
  static let droppedFromRecords: FieldNameSet = droppedFromResponses.union(.momentary)

  /// Room for all that `writeFields` writes, and for a start line and what frames a body.
  var capacity: Int {
    switch source {
    case .backend(let head, _): head.bytes.readableBytes + 192
    case .recorded(_, let response, _): response.fields.readableBytes + 384
    case .problem, .own: 512
    }
  }

  /// Writes the field lines, each ended by CRLF, but for those that frame the body or concern the connection.
  ///
  /// - Parameter now: The time in seconds since 1970; called only if a date has to be made.
  func writeFields(into out: inout ByteBuffer, now: () -> Int = WallClock.seconds) {
    switch source {
    case .backend(let head, let label):
      // Without a body, the length states what a GET would have had (RFC 9110, section 8.6).
      let keepsLength = content == .none && head.status != 204
      head.copyFields(
        into: &out,
        omitting: keepsLength ? Self.droppedFromResponses.subtracting(.length) : Self.droppedFromResponses,
        routeFields?.omission)
      // RFC 9110, section 6.6.1
      if head.status >= 200, head.first(.date) == nil { out.writeFieldLine("Date: ", date: now()) }
      if let label { label.write(into: &out) }
      if let crossOrigin { crossOrigin.writeAdditions(to: head, into: &out) }
    case .recorded(let record, let response, let age):
      if let crossOrigin {
        crossOrigin.write(recorded: response.fields, into: &out)
      } else {
        out.writeImmutableBuffer(response.fields)
      }
      let (now, recordedAt) = (now(), Int(record.recordedAt.milliseconds / 1000))
      out.writeFieldLine("Date: ", date: now)
      // The store's clock may be ahead of this node's.
      out.writeFieldLine("Age: ", age + max(0, now - recordedAt))
      ResponseLabel.replayed.write(into: &out)
      out.writeFieldLine("Idempotency-Recorded-At: ", date: recordedAt)
      out.writeFieldLine("Idempotency-Expires: ", date: Int(record.expiresAt.milliseconds / 1000))
    case .problem(let problem, let format, let length):
      write(problem.fields(as: format), length: length, now: now, into: &out)
    case .own(let response, let length):
      write(response.fields, allowance: response.allowance, length: length, now: now, into: &out)
    }
    if let routeFields { routeFields.write(for: source, into: &out) }
  }

  /// Writes the fields of a response of Semel's own.
  private func write(
    _ fields: [(name: StaticString, value: String)], allowance: OriginAllowance? = nil, length: Int,
    now: () -> Int, into out: inout ByteBuffer
  ) {
    for (name, value) in fields {
      out.writeLiteral(name)
      out.writeLiteral(": ")
      out.writeString(value)
      out.writeLiteral("\r\n")
    }
    if let crossOrigin { crossOrigin.writeOwn(allowing: allowance, into: &out) }
    out.writeFieldLine("Date: ", date: now())
    // The length of a 304 would be that of the document, which is not sent, and a 204 must have none.
    if content == .none, status != 304, status != 204 { out.writeContentLength(length) }
  }
}
