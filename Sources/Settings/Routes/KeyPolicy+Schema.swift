import Idempotency

extension KeyPolicy {
  static let schema = Schema(KeyPolicy(), check: { $0.check($1) }) {
    Member(
      "from", \.from, values: "a list of \(KeySource.allowed)",
      "the sources: the first that yields a key counts; a list in the list makes one key of several",
      show: { .list($0.map(\.shown)) }, read: { $0.readSources($1) }
    ).identity("but for sources added at the end")
    Member("format", \.format, .word, "`uuid` refuses keys of another form")
    // Longer keys would fill a store's memory. RFC 9110 (section 4.1) recommends support for URIs of at least 8000
    // bytes.
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

  /// Refuses limits between which no UUID fits.
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
}
