import Idempotency
import Yams

/// The components that the operations refer to. Each has a mark, by which a later run knows it as its own.
struct Components {
  enum Kind: String { case schemas, headers }

  static let problem = "IdempotencyProblem"
  static let otherError = "IdempotencyError"
  private static let mark = (name: "x-generator", value: "semel openapi")

  /// The fields of the backend's responses, in the order of their names in a document.
  static let markers: [(component: String, field: String, text: String)] = [
    (
      "IdempotencyStatus", "Idempotency-Status",
      "The part that this delivery had: executed (this one ran), replayed (the recorded response of an earlier one), not-stored (the key is free for a retry), unknown (nobody knows whether it ran)."
    ),
    (
      "IdempotentReplayed", "Idempotent-Replayed",
      "The word true on a recorded response of an earlier delivery. Absent on all others."
    ),
    (
      "IdempotencyRecordedAt", "Idempotency-Recorded-At",
      "The time of the recorded response, as an HTTP date. On replays alone."
    ),
    (
      "IdempotencyExpires", "Idempotency-Expires",
      "The time until which the response is replayed, as an HTTP date. On replays alone."
    ),
  ]
  static let retryAfter = "IdempotencyRetryAfter"

  /// Adds the components to a document, or renews those of an earlier run, for these forms of refusals.
  static func add(to document: inout APIDocument, formats: Set<ErrorFormat>) throws(APIDocument.Fault) {
    var headers = markers.map { ($0.component, header($0.text, type: "string")) }
    headers.append(
      (
        retryAfter,
        header(
          "The seconds after which the same request with the same key may be sent again.", type: "integer")
      ))
    var schemas: [(String, Node)] = []
    if formats.contains(.problem) { schemas.append((problem, problemSchema)) }
    if formats.contains(where: { $0 != .problem }) { schemas.append((otherError, otherSchema)) }
    for (name, value) in headers { try set(.headers, name, to: value, in: &document) }
    for (name, value) in schemas { try set(.schemas, name, to: value, in: &document) }
  }

  private static func set(
    _ kind: Kind, _ name: String, to value: Node, in document: inout APIDocument
  ) throws(APIDocument.Fault) {
    var components = document.root.member("components") ?? .members([])
    var group = components.member(kind.rawValue) ?? .members([])
    if let present = group.member(name), present.member(mark.name)?.scalar?.string != mark.value {
      let place = "components.\(kind.rawValue).\(name)"
      throw APIDocument.Fault(description: "\(place) is the document's own: give it another name")
    }
    group.set(name, to: value)
    components.set(kind.rawValue, to: group)
    document.root.set("components", to: components)
  }

  private static func header(_ text: String, type: String) -> Node {
    .members([
      ("description", .text(text)), ("schema", .members([("type", .text(type))])),
      (mark.name, .text(mark.value)),
    ])
  }

  /// A problem document. Its code is no enumeration: later versions add codes, and clients must not fail at one.
  private static var problemSchema: Node {
    func property(_ type: String, _ text: String) -> Node {
      .members([("type", .text(type)), ("description", .text(text))])
    }
    let codes = Problem.Code.allCases.map(\.rawValue).joined(separator: ", ")
    return .members([
      ("type", .text("object")),
      ("description", .text("A refusal by the idempotency layer, as a problem document (RFC 9457).")),
      (
        "required",
        .sequence(.init(["type", "title", "status", "detail", "code", "retryable"].map { .text($0) }))
      ),
      (
        "properties",
        .members([
          ("type", property("string", "A reference to the description of the code.")),
          ("title", property("string", "The code in words.")),
          ("status", property("integer", "The status of the response.")),
          ("detail", property("string", "One sentence on what to do.")),
          ("code", property("string", "One of \(codes). Later versions may add codes.")),
          (
            "retryable",
            property(
              "boolean",
              "Whether the same request with the same key may yet get a response. Never answer false with a new key, unless you know that the operation did not take effect."
            )
          ),
          ("original_status", property("integer", "The status of a response that was not kept.")),
          ("location", property("string", "The Location of a response that was not kept.")),
        ])
      ),
      (mark.name, .text(mark.value)),
    ])
  }

  private static var otherSchema: Node {
    .members([
      ("type", .text("object")),
      ("description", .text("A refusal by the idempotency layer, in the form of this API's errors.")),
      (mark.name, .text(mark.value)),
    ])
  }
}

/// A status with which a route's requests may be refused, and the codes that come with it.
struct Refusal: Equatable {
  let status: Int
  let codes: [Problem.Code]

  /// The refusals of a route that a client of one operation may meet, by status, without those of every request.
  static func all(of policy: RoutePolicy) -> [Refusal] {
    var codes: [Int: [Problem.Code]] = [:]
    for code in Problem.Code.allCases where meets(code, on: policy) {
      for status in statuses(of: code, on: policy) { codes[status, default: []].append(code) }
    }
    return codes.sorted { $0.key < $1.key }.map { Refusal(status: $0.key, codes: $0.value) }
  }

  private static func statuses(of code: Problem.Code, on policy: RoutePolicy) -> [Int] {
    let changed: Int? =
      switch code {
      case .payloadMismatch: policy.mismatchStatus
      case .inFlight: policy.inFlightStatus
      case .keyExpired: policy.expiredStatus
      default: nil
      }
    return changed.map { [$0] } ?? code.statuses
  }

  private static func meets(_ code: Problem.Code, on policy: RoutePolicy) -> Bool {
    switch code {
    case .keyMissing: policy.idempotency == .required && policy.key.from != [.payload]
    case .keyInvalid: policy.key.from != [.payload]
    case .callerUnknown: policy.caller?.isShared == false
    case .keyNotSupported, .headerTooLarge, .notImplemented, .noRoute: false
    case .badRequest, .payloadMismatch, .inFlight, .outcomeUnknown, .responseNotKept, .keyExpired,
      .requestTooLarge, .requestTimeout, .storeUnavailable, .storeUnreadable, .upstreamUnreachable,
      .overloaded,
      .quotaExceeded:
      true
    }
  }

  /// The response object, for a status that the operation does not describe.
  func response(as format: ErrorFormat) -> Node {
    let texts = codes.map { "\($0.title) (\($0.rawValue))." }
    var members: [(name: String, value: Node)] = [("description", .text(texts.joined(separator: " ")))]
    if codes.contains(where: { $0.isRetryable != false }) {
      members.append(("headers", .members([("Retry-After", .reference(.headers, Components.retryAfter))])))
    }
    members.append(("content", .members([(Self.mediaType(format), Self.content(format))])))
    return .members(members)
  }

  /// A response of the operation's own with the refusal's media type beside its own, unless it has that already.
  func joined(to response: Node, as format: ErrorFormat) -> Node {
    var response = response
    var content = response.member("content") ?? .members([])
    guard content.member(Self.mediaType(format)) == nil else { return response }
    content.set(Self.mediaType(format), to: Self.content(format))
    response.set("content", to: content)
    return response
  }

  private static func mediaType(_ format: ErrorFormat) -> String {
    format == .problem ? "application/problem+json" : "application/json"
  }

  private static func content(_ format: ErrorFormat) -> Node {
    let name = format == .problem ? Components.problem : Components.otherError
    return .members([("schema", .reference(.schemas, name))])
  }
}
