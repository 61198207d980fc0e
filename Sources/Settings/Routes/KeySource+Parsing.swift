import Idempotency

extension KeySource {
  static let allowed = "header:NAME, query:NAME, json:/pointer, form:NAME or payload"

  /// The maximum number of parts of one key. Each may cost a search of the whole body.
  static let maxParts = 8

  static func parse(_ text: String) throws(Refusal) -> KeySource {
    if text == "payload" { return .payload }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty else { throw refusal(of: text) }
    switch parts[0] {
    case "header": return .header(try Token.identityField(parts[1]))
    case "query": return .query(String(parts[1]))
    case "json": return .json(try JSONPointer.parse(parts[1]))
    case "form": return .form(String(parts[1]))
    default: throw refusal(of: text)
    }
  }

  private static func refusal(of text: String) -> Refusal {
    SourceText.refusal(of: text, allowed: allowed, words: ["payload"])
  }

  /// Reads a source: a text, or a list of the parts of one key.
  static func read(_ value: Value) -> KeySource? {
    guard value.isList else {
      return value.parsed("a key source") { text throws(Refusal) in try SourceText.parse(text, parse) }
    }
    let parts = value.list("a list such as [query:token, query:page]", of: "a part", parsePart) ?? []
    guard !value.hasFault else { return nil }
    if let refusal = refusal(of: parts) {
      value.refuse(refusal)
      return nil
    }
    return .composite(parts)
  }

  private static func parsePart(_ text: String) throws(Refusal) -> KeySource {
    let part = try SourceText.parse(text, parse)
    guard part != .payload else { throw Refusal("is a key by itself; take it out of this list") }
    return part
  }

  private static func refusal(of parts: [KeySource]) -> String? {
    if parts.count < 2 {
      return "must have two parts or more, which make one key; write a single one without a list"
    }
    return parts.count > maxParts ? "must have \(maxParts) parts at most" : nil
  }
}

extension JSONPointer {
  /// Checks a pointer to a member and returns its text.
  static func parse(_ text: some StringProtocol) throws(Refusal) -> String {
    let text = String(text)
    guard !text.isEmpty, JSONPointer(text) != nil else {
      throw Refusal(
        "must be a JSON pointer that begins with a slash, such as /order/id (~1 for a slash, ~0 for ~)")
    }
    return text
  }
}
