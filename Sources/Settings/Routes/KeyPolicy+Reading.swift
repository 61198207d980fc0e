import Idempotency

extension KeyPolicy {
  mutating func read(_ section: Section) {
    if let items = section.member("from")?.items("a list such as [header:Idempotency-Key]") {
      if items.isEmpty { section["from"]?.refuse("must name at least one source: \(KeySource.allowed)") }
      from = Value.distinct(items, KeySource.read)
      for (source, item) in zip(from.dropLast(), items) where source == .payload && section.isSound("from") {
        item.refuse("yields a key for every request, so that no later source counts; write it last")
      }
    }
    section.choice("format", into: &format)
    // Longer keys would fill a store's memory. RFC 9110 (section 4.1) recommends support for URIs of at least 8000
    // bytes.
    section.integer("min_length", into: &minLength, in: 1...8000)
    section.integer("max_length", into: &maxLength, in: 1...8000)
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
