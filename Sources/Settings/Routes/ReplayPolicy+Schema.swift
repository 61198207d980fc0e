import Idempotency
import Wire

extension ReplayPolicy {
  static let schema = Schema(ReplayPolicy(), check: { $0.check($1) }) {
    Member(
      "drop", \.drop, .fieldNames("a list such as [X-Request-Id]", Self.dropped),
      "response fields that replays leave out; `X-Trace-*` names all with that beginning")
    Member(
      "keep", \.keep, .fieldNames("a list such as [RateLimit]", Self.kept),
      "of the fields that replays leave out by default, `RateLimit*`, `X-RateLimit*` and `X-Rate-Limit*`, those "
        + "that they carry"
    )
  }

  /// Refuses a field that both lists name, also by the beginning of its name: `drop` would have no effect.
  private func check(_ section: Section) {
    guard section.isSound("drop", "keep"),
      let name = drop.names.first(where: { keep.contains($0) })
        ?? keep.names.first(where: { drop.contains($0) })
    else { return }
    (section["keep"] ?? section["drop"])?.refuse("names \(name), which drop names, too; take one of them out")
  }

  /// The fields without which a client could not read the recorded response.
  private static let needed = [
    "content-type", "content-encoding", "content-length", "transfer-encoding", "content-range",
  ]

  private static func dropped(_ text: String) throws(Refusal) -> String {
    let name = try fieldName(text)
    try require(name != "set-cookie", "has a member of its own; take it out, and write set_cookie: drop")
    let list = FieldNameList([name])
    if let field = needed.first(where: { list.contains($0) }) {
      throw Refusal("leaves out \(field), without which a client cannot read the response; take it out")
    }
    return name
  }

  private static func kept(_ text: String) throws(Refusal) -> String {
    let name = try fieldName(text)
    let beginning = name.hasSuffix("*") ? String(name.dropLast()) : name
    try require(
      FieldNameList.rateLimits.contains(beginning),
      "must be one of RateLimit*, X-RateLimit* and X-Rate-Limit*; the others are recorded, or never can be")
    return name
  }

  /// A field's name, or the beginning of several with a `*`, in lower case.
  private static func fieldName(_ text: String) throws(Refusal) -> String {
    let beginning = text.hasSuffix("*") ? text.dropLast() : text[...]
    try require(
      Token.isToken(beginning) && !beginning.contains("*"),
      "must name a header field, such as X-Request-Id, or the beginning of several, such as X-Trace-*")
    return text.lowercased()
  }
}

extension Notation<FieldNameList> {
  fileprivate static func fieldNames(
    _ wanted: String, _ parse: @escaping @Sendable (String) throws(Refusal) -> String
  ) -> Notation {
    Notation(
      values: wanted,
      read: { $0.list(wanted, of: "a header's name", parse).map { FieldNameList($0) } },
      show: { .texts($0.names) })
  }
}
