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
