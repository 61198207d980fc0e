import Idempotency

/// The patterns that a route lists for each class, before they become its table.
struct OutcomePatterns {
  private var lists: [OutcomeClass: [OutcomeTable.Pattern]] = [:]

  var table: OutcomeTable {
    OutcomeTable(final: lists[.final] ?? [], retry: lists[.retry] ?? [], unknown: lists[.unknown] ?? [])
  }

  /// Takes the lists that a profile sets in place of those of before.
  mutating func adopt(_ preset: OutcomeTable) {
    for (outcome, patterns) in preset.own where !patterns.isEmpty { lists[outcome] = patterns }
  }

  /// Reads `outcomes`. A list replaces the previous list of its class.
  mutating func read(_ section: Section) {
    var elements: [OutcomeClass: [(pattern: OutcomeTable.Pattern, value: Value)]] = [:]
    for outcome in OutcomeClass.allCases {
      guard let items = section.member(outcome.rawValue)?.items("a list such as [500, 5xx]") else { continue }
      elements[outcome] = items.compactMap { item in
        item.parsed("a status such as 500 or 5xx", OutcomeTable.Pattern.parse).map { ($0, item) }
      }
      lists[outcome] = elements[outcome]?.map(\.pattern)
    }
    refuseOverlaps(elements)
  }

  /// Refuses a pattern that is listed in two classes, or twice in one.
  private func refuseOverlaps(_ elements: [OutcomeClass: [(pattern: OutcomeTable.Pattern, value: Value)]]) {
    var seen: [OutcomeTable.Pattern: OutcomeClass] = [:]
    for outcome in OutcomeClass.allCases where elements[outcome] == nil {
      for pattern in lists[outcome] ?? [] { seen[pattern] = outcome }
    }
    for outcome in OutcomeClass.allCases {
      for (pattern, value) in elements[outcome] ?? [] {
        if let other = seen[pattern] {
          value.refuse("is listed under \(other.rawValue) too; a status belongs to one class")
        }
        seen[pattern] = outcome
      }
    }
  }
}

extension OutcomeTable.Pattern {
  /// Parses `500` or `5xx`. A status below 200 is no outcome, because the response is still to come (RFC 9110, section
  /// 15.2).
  static func parse(_ text: String) throws(Refusal) -> Self {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let rest = text.dropFirst(digits.count)
    if digits.count == 3, rest.isEmpty, let status = Int(digits), (200...599).contains(status) {
      return .status(status)
    }
    if digits.count == 1, rest.lowercased() == "xx", let hundred = Int(digits), (2...5).contains(hundred) {
      return .hundred(hundred)
    }
    throw Refusal("must be a status from 200 to 599, or a class from 2xx to 5xx")
  }
}
