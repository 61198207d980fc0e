import Idempotency
import NIOCore
import Wire

/// Writes answers as bytes of HTTP/1.1: the backend's, recorded ones, and refusals.
enum AnswerEncoder {
  /// How an answer with a body is delimited for one client.
  enum Framing: Equatable {
    /// An answer that has no body, whatever its fields say.
    case none
    case length(Int)
    case chunked
    /// By the end of the connection, for HTTP/1.0.
    case close
  }

  /// What Semel says of an answer, in `Idempotency-Status`.
  enum Label: String {
    case executed, replayed, ignored, unknown, unprotected
    case notStored = "not-stored"

    /// What is said of a backend's answer of this class.
    init(_ outcome: OutcomeClass) {
      switch outcome {
      case .final: self = .executed
      case .retry: self = .notStored
      case .unknown: self = .unknown
      }
    }

    /// The whole line.
    fileprivate var line: StaticString {
      switch self {
      case .executed: "Idempotency-Status: executed\r\n"
      case .replayed: "Idempotency-Status: replayed\r\nIdempotent-Replayed: true\r\n"
      case .ignored: "Idempotency-Status: ignored\r\n"
      case .unknown: "Idempotency-Status: unknown\r\n"
      case .unprotected: "Idempotency-Status: unprotected\r\n"
      case .notStored: "Idempotency-Status: not-stored\r\n"
      }
    }
  }

  /// Fields of a backend's answer that never reach a client: framing, which is made anew, Semel's own answer fields,
  /// and those by which a backend steers.
  static let droppedFromAnswers: FieldNameSet = FieldNameSet(
    .contentLength, .idempotencyStatus, .idempotentReplayed, .idempotencyRecordedAt, .idempotencyExpires,
    .idempotencyOutcome, .idempotencyRetention)

  /// Fields that are never recorded, beyond these.
  static let droppedFromRecords: FieldNameSet = droppedFromAnswers.union(
    FieldNameSet(.date, .serverTiming, .altSvc))

  /// The head of a backend's answer for the client.
  static func head(
    _ head: MessageHead, framing: Framing, label: Label?, to request: RequestHead, isClosing: Bool,
    bodyCapacity: Int
  ) -> ByteBuffer {
    var out = ByteBufferAllocator().buffer(capacity: head.bytes.readableBytes + 192 + bodyCapacity)
    out.writeStatusLine(head.status)
    // Where an answer has no body, its length says what a GET would have had (RFC 9110, section 8.6).
    let dropped =
      framing == .none && head.status != 204 ? droppedFromAnswers.subtracting(.length) : droppedFromAnswers
    head.copyFields(into: &out, omitting: dropped)
    if let label { out.writeStaticString(label.line) }
    finish(&out, framing: framing, request: request, isClosing: isClosing)
    return out
  }

  /// A recorded answer, whole.
  static func replay(
    _ record: CompletedRecord, _ response: RecordedResponse, to request: RequestHead, isClosing: Bool,
    now: Int
  ) -> ByteBuffer {
    let hasTrailers = response.trailers.readableBytes > 0 && request.head.minorVersion == 1
    let framing: Framing =
      hasNoBody(status: response.status, method: request.head.method)
      ? .none : hasTrailers ? .chunked : .length(response.body.readableBytes)
    var out = ByteBufferAllocator().buffer(
      capacity: response.fields.readableBytes + response.body.readableBytes + 384)
    out.writeStatusLine(response.status)
    out.writeImmutableBuffer(response.fields)
    out.writeStaticString("Date: ")
    HTTPDate.write(now, into: &out)
    out.writeStaticString("\r\n")
    out.writeStaticString(Label.replayed.line)
    out.writeStaticString("Idempotency-Recorded-At: ")
    HTTPDate.write(Int(record.recordedAt.milliseconds / 1000), into: &out)
    out.writeStaticString("\r\nIdempotency-Expires: ")
    HTTPDate.write(Int(record.expiresAt.milliseconds / 1000), into: &out)
    out.writeStaticString("\r\n")
    finish(&out, framing: framing, request: request, isClosing: isClosing)
    writeBody(response.body, trailers: response.trailers, framing: framing, to: &out)
    return out
  }

  /// A refusal of Semel's own (RFC 9457).
  static func problem(_ problem: Problem, to request: RequestHead? = nil, isClosing: Bool) -> ByteBuffer {
    let body = problem.body()
    var out = ByteBufferAllocator().buffer(capacity: body.readableBytes + 384)
    out.writeStatusLine(problem.status)
    for (name, value) in problem.fields {
      out.writeStaticString(name)
      out.writeStaticString(": ")
      out.writeString(value)
      out.writeStaticString("\r\n")
    }
    out.writeStaticString("Date: ")
    HTTPDate.write(WallClock.seconds(), into: &out)
    out.writeStaticString("\r\n")
    out.writeContentLength(body.readableBytes)
    writeConnection(&out, minorVersion: request?.head.minorVersion ?? 1, isClosing: isClosing)
    out.writeStaticString("\r\n")
    if request?.head.method != .head { out.writeImmutableBuffer(body) }
    return out
  }

  /// Whether an answer has no body by its status or the request's method (RFC 9112, section 6.3).
  static func hasNoBody(status: Int, method: MessageHead.Method) -> Bool {
    method == .head || status == 204 || status == 304
  }

  /// The fields that end a head.
  private static func finish(_ out: inout ByteBuffer, framing: Framing, request: RequestHead, isClosing: Bool)
  {
    switch framing {
    case .none, .close: break
    case .length(let count):
      out.writeContentLength(count)
    case .chunked: out.writeChunkedCoding()
    }
    writeConnection(&out, minorVersion: request.head.minorVersion, isClosing: isClosing || framing == .close)
    out.writeStaticString("\r\n")
  }

  private static func writeConnection(_ out: inout ByteBuffer, minorVersion: UInt8, isClosing: Bool) {
    if isClosing {
      out.writeStaticString("Connection: close\r\n")
    } else if minorVersion == 0 {
      out.writeStaticString("Connection: keep-alive\r\n")
    }
  }

  /// A whole body in its framing.
  static func writeBody(_ body: ByteBuffer, trailers: ByteBuffer, framing: Framing, to out: inout ByteBuffer)
  {
    switch framing {
    case .none: break
    case .length, .close: out.writeImmutableBuffer(body)
    case .chunked:
      writeChunk(body, to: &out)
      out.writeLastChunk(trailers: trailers)
    }
  }

  static func writeChunk(_ piece: ByteBuffer, to out: inout ByteBuffer) {
    guard piece.readableBytes > 0 else { return }
    out.writeChunkHeader(piece.readableBytes)
    out.writeImmutableBuffer(piece)
    out.writeChunkEnd()
  }
}
