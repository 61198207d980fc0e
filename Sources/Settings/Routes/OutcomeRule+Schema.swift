import Idempotency
import Wire

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
