import Idempotency

extension PayloadPart {
  static let allowed = "/pointer, query:NAME, form:NAME or part:NAME"
  static let allowedInIgnore = "/pointer, query:NAME, form:NAME, part:NAME or part-filename"

  /// - Parameter allowed: The forms, which a refusal names.
  static func parse(_ text: String, allowed: String) throws(Refusal) -> PayloadPart {
    if text.hasPrefix("/") { return .json(try JSONPointer.parse(text)) }
    let part = try SourceText.parse(text) { text throws(Refusal) in
      guard let part = PayloadPart(text: text) else {
        let near = Token.isToken(text) && text != "part-filename" ? "; did you mean /\(text)?" : ""
        throw Refusal("must be \(allowed)\(near)")
      }
      return part
    }
    guard part != .fileNames || allowed == allowedInIgnore else {
      throw Refusal("is for ignore alone; name the part that counts, such as part:document")
    }
    return part
  }
}

extension Notation<[PayloadPart]> {
  static func parts(_ allowed: String) -> Notation {
    .list(
      "a list of \(allowed)", of: "a part of the payload", show: { .text($0.text) },
      parse: { text throws(Refusal) in try PayloadPart.parse(text, allowed: allowed) })
  }
}
