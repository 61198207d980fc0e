import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

/// The head of a response to a client, independent of its encoding for an HTTP version.
struct ClientResponseHead {
  /// The origin of a response.
  enum Source {
    /// A backend's response, with Semel's label.
    case backend(MessageHead, ResponseLabel?)
    /// A recorded response, and the age in seconds that it had when it was recorded.
    case recorded(CompletedRecord, RecordedResponse, age: Int)
    /// A refusal of Semel's own, with the form and the length of its document.
    case problem(Problem, ErrorFormat, length: Int)
    /// Another response of Semel's own, with the length of its body.
    case own(OwnResponse, length: Int)
  }

  /// The body that follows the head.
  enum Content: Equatable {
    /// None, whatever the fields say: the response to HEAD, 204 and 304 (RFC 9112, section 6.3).
    case none
    case length(Int)
    /// A body whose length is not known before its end.
    case unknown

    /// The content of a response to this method.
    init(length: Int?, status: Int, method: MessageHead.Method?) {
      if method == .head || status == 204 || status == 304 {
        self = .none
      } else {
        self = length.map(Content.length) ?? .unknown
      }
    }
  }

  let source: Source
  let content: Content
  /// The fields for pages of other origins; `nil` on a route without `cors`.
  var crossOrigin: CrossOrigin?
  /// The fields that the route states beyond those of others; `nil` for none.
  var routeFields: RouteFields?

  var status: Int {
    switch source {
    case .backend(let head, _): head.status
    case .recorded(_, let response, _): response.status
    case .problem(let problem, _, _): problem.status
    case .own(let response, _): response.status
    }
  }
}

/// A whole response.
struct ClientResponse {
  var head: ClientResponseHead
  let body: ByteBuffer
  let trailers: ByteBuffer

  /// Whether the body has the length that the head states.
  var hasStatedLength: Bool {
    if case .length(let length) = head.content { length == body.readableBytes } else { true }
  }

  /// A backend's response.
  init(
    _ head: MessageHead, label: ResponseLabel?, body: ByteBuffer, trailers: ByteBuffer,
    to method: MessageHead.Method
  ) {
    self.head = ClientResponseHead(
      source: .backend(head, label),
      content: .init(length: body.readableBytes, status: head.status, method: method))
    self.body = body
    self.trailers = trailers
  }

  /// A replay of a recorded response, which has no stamps any more.
  ///
  /// - Parameter age: The age that the response had when it was recorded, in seconds.
  init(
    replaying record: CompletedRecord, _ response: RecordedResponse, age: Int = 0,
    to method: MessageHead.Method
  ) {
    head = ClientResponseHead(
      source: .recorded(record, response, age: age),
      content: .init(length: response.body.readableBytes, status: response.status, method: method))
    body = response.body
    trailers = response.trailers
  }

  /// A response of Semel's own.
  init(_ response: OwnResponse, to method: MessageHead.Method) {
    body = response.body
    head = ClientResponseHead(
      source: .own(response, length: body.readableBytes),
      content: .init(length: body.readableBytes, status: response.status, method: method))
    trailers = ByteBuffer()
  }

  /// A refusal. `method` is `nil` if the request could not be read.
  init(_ problem: Problem, as format: ErrorFormat = .problem, to method: MessageHead.Method? = nil) {
    body = problem.body(as: format)
    head = ClientResponseHead(
      source: .problem(problem, format, length: body.readableBytes),
      content: .init(length: body.readableBytes, status: problem.status, method: method))
    trailers = ByteBuffer()
  }
}

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

/// The value of `Idempotency-Status`, Semel's statement on a response.
enum ResponseLabel {
  /// The response is recorded without its body, so that a retry does not get it.
  case executedUnkept
  case executed, replayed, ignored, unknown, unprotected, notStored
  /// The request was forwarded whatever its record is, since its route is shadowed.
  case shadow(would: ShadowVerdict)

  /// The label of a backend's response of this class.
  ///
  /// - Parameter isKept: Whether the record has its body, as far as that is known.
  init(_ outcome: OutcomeClass, isKept: Bool = true) {
    switch outcome {
    case .final: self = isKept ? .executed : .executedUnkept
    case .retry: self = .notStored
    case .unknown: self = .unknown
    }
  }

  /// Writes the whole line.
  func write(into out: inout ByteBuffer) {
    switch self {
    case .executed: out.writeLiteral("Idempotency-Status: executed\r\n")
    case .executedUnkept: out.writeLiteral("Idempotency-Status: executed; kept=no\r\n")
    case .replayed: out.writeLiteral("Idempotency-Status: replayed\r\nIdempotent-Replayed: true\r\n")
    case .ignored: out.writeLiteral("Idempotency-Status: ignored\r\n")
    case .unknown: out.writeLiteral("Idempotency-Status: unknown\r\n")
    case .unprotected: out.writeLiteral("Idempotency-Status: unprotected\r\n")
    case .notStored: out.writeLiteral("Idempotency-Status: not-stored\r\n")
    case .shadow(let would): out.writeString("Idempotency-Status: shadow; would=\(would.text)\r\n")
    }
  }
}

/// The fields by which a route states more in the responses to keyed requests: their key, and what the clients of a
/// profile look for.
///
/// A class, so that a request of another route holds an empty reference.
final class RouteFields: Sendable {
  /// The backend's own fields of these names, which do not reach the client.
  let omission: FieldOmission
  private let profile: RouteProfile?
  /// The line that repeats the key; `nil` if the route does not, or the key is not known.
  private let echo: ByteBuffer?

  init(_ route: Route, echo: ByteBuffer? = nil) {
    omission = route.statedByRoute
    profile = route.policy.profile
    self.echo = echo
  }

  /// Those of a refusal to a client of the profile `repeatability` where no route has it.
  init(rejecting: Void) {
    omission = FieldOmission(FieldNameList())
    profile = .repeatability
    echo = nil
  }

  /// Writes them for a response.
  func write(for source: ClientResponseHead.Source, into out: inout ByteBuffer) {
    if case .own = source { return }
    if let echo { out.writeImmutableBuffer(echo) }
    switch source {
    case .backend(_, let label): writeFirst(label, into: &out)
    case .recorded: writeResult(isAccepted: true, into: &out)
    case .problem(let problem, _, _): writeResult(isAccepted: problem.isOfAcceptedRequest, into: &out)
    case .own: break
    }
  }

  private func writeFirst(_ label: ResponseLabel?, into out: inout ByteBuffer) {
    switch label {
    case .executed, .executedUnkept, .notStored, .unprotected: writeResult(isAccepted: true, into: &out)
    case .unknown: break
    case .replayed, .ignored, .shadow, nil: return
    }
    if profile?.marksFirstResponses == true { out.writeLiteral("Idempotent-Replayed: false\r\n") }
  }

  private func writeResult(isAccepted: Bool?, into out: inout ByteBuffer) {
    guard profile == .repeatability, let isAccepted else { return }
    out.writeString("Repeatability-Result: \(isAccepted ? "accepted" : "rejected")\r\n")
  }
}

extension Problem {
  /// Whether the request behind a refusal has run, or runs, once (OASIS Repeatable Requests 1.0); `nil` if nobody knows: an
  /// earlier delivery may have run, and the record was not read or says no more.
  fileprivate var isOfAcceptedRequest: Bool? {
    switch code {
    case .inFlight, .responseNotKept: true
    case .badRequest, .keyMissing, .keyInvalid, .keyNotSupported, .payloadMismatch, .requestTooLarge,
      .headerTooLarge, .notImplemented, .noRoute, .keyExpired:
      false
    case .callerUnknown, .requestTimeout, .outcomeUnknown, .storeUnavailable, .storeUnreadable,
      .upstreamUnreachable, .overloaded, .quotaExceeded:
      nil
    }
  }
}
