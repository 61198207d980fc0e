import Idempotency

extension KeyPolicy {
  static let schema = Schema(KeyPolicy(), check: { $0.check($1) }) {
    Member(
      "from", \.from, values: "a list of \(KeySource.allowed)",
      "the sources: the first that yields a key counts; a list in the list makes one key of several",
      show: { .list($0.map(\.shown)) }, read: { $0.readSources($1) }
    ).identity("but for sources added at the end")
    Member("format", \.format, .word, "`uuid` refuses keys of another form")
    // Longer keys would fill a store. RFC 9110 (section 4.1) recommends support for URIs of at least 8000 bytes.
    Member("min_length", \.minLength, .integer(1...8000), "the minimum number of characters of a key")
    Member("max_length", \.maxLength, .integer(1...8000), "the maximum number of characters of a key")
    Member(
      "placeholders", \.placeholders, .word,
      "`accept`: keys that name nothing, such as `undefined`, count like any other")
  }

  private mutating func readSources(_ member: Value) {
    guard let items = member.items("a list such as [header:Idempotency-Key]") else { return }
    if items.isEmpty { member.refuse("must name at least one source: \(KeySource.allowed)") }
    from = Value.distinct(items, KeySource.read)
    for (source, item) in zip(from.dropLast(), items) where source == .payload && !member.hasFault {
      item.refuse("yields a key for every request, so that no later source counts; write it last")
    }
  }

  private func check(_ section: Section) {
    guard section.isSound("min_length", "max_length", "format") else { return }
    if minLength <= maxLength { checkUUID(section) } else { refuseLengths(section) }
  }

  private func checkUUID(_ section: Section) {
    guard format == .uuid, !(minLength...maxLength).contains(36) else { return }
    let (name, limit) = maxLength < 36 ? ("max_length", maxLength) : ("min_length", minLength)
    if let member = section[name] {
      member.refuse("lets no UUID pass, which has 36 characters; allow that length, or write format: any")
    } else {
      section["format"]?.refuse(
        "lets no key pass, because \(name) is \(limit) and a UUID has 36 characters")
    }
  }

  private func refuseLengths(_ section: Section) {
    if let member = section["min_length"] {
      member.refuse("must not exceed max_length: \(minLength) against \(maxLength)")
    } else {
      section["max_length"]?.refuse("must not be less than min_length: \(maxLength) against \(minLength)")
    }
  }
}

extension KeySource {
  fileprivate var shown: Shown {
    if case .composite(let parts) = self { .texts(parts.map(\.text)) } else { .text(text) }
  }

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
  static func parse(_ text: some StringProtocol) throws(Refusal) -> String {
    let text = String(text)
    try require(
      !text.isEmpty && JSONPointer(text) != nil,
      "must be a JSON pointer that begins with a slash, such as /order/id (~1 for a slash, ~0 for ~)")
    return text
  }
}
