import Idempotency
import Wire

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

extension OutcomeRule {
  static let example = "{status: 422, is: retry}"

  static let schema = Schema(OutcomeRule(.final), check: { $0.check($1) }) {
    Member("status", \.statuses, .statusRanges, "the statuses that it takes; all without it")
    Member(
      "header", \.headers, .wantedFields,
      "the fields that the response has, with these values alone; `present` is any value")
    Member(
      "json", \.members, .wantedMembers,
      "the members of its body, by JSON pointers; `present` is any value but null")
    Member("is", \.verdict, .word, "`deleted`: released, and another payload may follow under the key")
      .required("is missing: write \(Verdict.allCases.map(\.rawValue).asAlternatives)")
  }

  private func check(_ section: Section) {
    guard section.isSound("status", "header", "json"), !hasCondition else { return }
    section.value.refuse("must have a condition, status, header or json, such as \(Self.example)")
  }
}

extension OutcomeRule.Wanted {
  /// The word for any value.
  fileprivate static let anyValue = "present"

  fileprivate init(_ text: String) { self = text == Self.anyValue ? .present : .text(text) }

  fileprivate var shown: Shown {
    switch self {
    case .present: .text(Self.anyValue)
    case .text(let text): .text(text)
    }
  }
}

extension Notation<[ClosedRange<Int>]> {
  fileprivate static let statusRanges = Notation(
    values: "a list such as [422, 4xx, 500-599]",
    read: { member in
      guard member.isList else { return range(member).map { [$0] } }
      let items = member.items("a list such as [422, 4xx, 500-599]") ?? []
      if items.isEmpty { member.refuse("must name a status: write one such as 422, or take the member out") }
      return Value.distinct(items, range)
    }, show: { $0.isEmpty ? nil : .list($0.map(\.shown)) })

  private static func range(_ value: Value) -> ClosedRange<Int>? {
    value.parsed("a status such as 422, 4xx or 500-599") { text throws(Refusal) in
      let bounds = text.split(separator: "-", omittingEmptySubsequences: false)
      if bounds.count == 2, case .status(let first)? = try? OutcomeTable.Pattern.parse(String(bounds[0])),
        case .status(let last)? = try? OutcomeTable.Pattern.parse(String(bounds[1])), first <= last
      {
        return first...last
      }
      guard bounds.count == 1, let pattern = try? OutcomeTable.Pattern.parse(text) else {
        throw Refusal("must be a status from 200 to 599, a class from 2xx to 5xx, or a range such as 500-599")
      }
      switch pattern {
      case .status(let status): return status...status
      case .hundred(let hundred): return hundred * 100...hundred * 100 + 99
      }
    }
  }
}

extension ClosedRange<Int> {
  fileprivate var shown: Shown { count == 1 ? .number(lowerBound) : .text(OutcomeRule.text(self)) }
}

extension Notation<[OutcomeRule.Field]> {
  fileprivate static let wantedFields = Notation(
    values: "a mapping such as {Transient-Error: \"true\"} or {Transient-Error: present}",
    read: { member in
      var names: Set<String> = []
      if member.isMapping, member.names.isEmpty {
        member.refuse("must name a field, such as {Transient-Error: \"true\"}")
      }
      return member.mapped("a mapping such as {Transient-Error: \"true\"}") { name, value throws(Refusal) in
        guard Token.isToken(name), names.insert(name.lowercased()).inserted else {
          throw Refusal("must name a header field, such as Transient-Error, and be there once")
        }
        if FieldName.isOfSemel(name) {
          throw Refusal(
            "is a field that Semel writes itself and drops from every backend's response, also from that of another "
              + "Semel; go by Idempotency-Outcome, which a backend sends, or by its body, such as json: {/code: "
              + "outcome_unknown}")
        }
        return value.parsed("a header's value, or present", Token.fieldValue)
          .map { OutcomeRule.Field(name: name.lowercased(), wanted: .init($0)) }
      }
    },
    show: { $0.isEmpty ? nil : .members($0.map { Shown.Member($0.name, $0.wanted.shown) }) })
}

extension Notation<[OutcomeRule.BodyMember]> {
  fileprivate static let wantedMembers = Notation(
    values: "a mapping such as {/code: not_found} or {/code: present}",
    read: { member in
      if member.isMapping, member.names.isEmpty {
        member.refuse("must name a member, such as {/code: not_found}")
      }
      return member.mapped("a mapping such as {/code: not_found}") { pointer, value throws(Refusal) in
        guard OutcomeRule.BodyMember(pointer: pointer, wanted: .present) != nil else {
          throw Refusal("must be a JSON pointer that begins with a slash, such as /code")
        }
        let text = value.isNull ? "null" : value.text("a text, a number, true, false, null or present")
        return text.flatMap { OutcomeRule.BodyMember(pointer: pointer, wanted: .init($0)) }
      }
    },
    show: { $0.isEmpty ? nil : .members($0.map { Shown.Member($0.pointer, $0.wanted.shown) }) })
}

extension FieldName {
  /// Whether a field is one of Semel's own in its responses. Those by which a backend steers are the backend's.
  fileprivate static func isOfSemel(_ name: String) -> Bool {
    let own = FieldNameSet.ownResponse.subtracting(FieldNameSet(.idempotencyOutcome, .idempotencyRetention))
    return own.contains(Array(name.lowercased().utf8).withUnsafeBytes(FieldName.recognise))
  }
}
