import Idempotency

/// `outcomes` of a route while it is read: lists of each class, or rules with a preset behind them. Lists add to those
/// of before. Rules and presets take the place of all that came before, as lists take theirs.
struct OutcomePatterns {
  private var lists: [OutcomeClass: [OutcomeTable.Pattern]] = [:]
  /// The preset and the rules before it; `nil` for lists.
  private var ruled: (preset: OutcomePreset, rules: [OutcomeRule])?

  static let forms =
    "lists such as {retry: [500, 5xx]}, rules such as [\(OutcomeRule.example)], or \(presets)"
  private static let presets = OutcomePreset.allCases.map(\.rawValue).asAlternatives

  var table: OutcomeTable {
    if let ruled { return OutcomeTable(ruled.preset, rules: ruled.rules) }
    return OutcomeTable(
      final: lists[.final] ?? [], retry: lists[.retry] ?? [], unknown: lists[.unknown] ?? [])
  }

  /// Takes the lists that a profile sets in place of those of before.
  mutating func adopt(_ preset: OutcomeTable) {
    for (outcome, patterns) in preset.own where !patterns.isEmpty {
      ruled = nil
      lists[outcome] = patterns
    }
  }

  mutating func read(_ value: Value) {
    if value.isMapping {
      if ruled != nil { (ruled, lists) = (nil, [:]) }
      value.section { readLists($0) }
    } else if value.isList {
      ruled = Self.rules(value)
    } else if let preset = value.choice(Self.forms, { OutcomePreset(rawValue: $0) }) {
      ruled = (preset, [])
    }
  }

  /// Reads the lists of the classes. A list replaces the previous list of its class.
  private mutating func readLists(_ section: Section) {
    var elements: [OutcomeClass: [(pattern: OutcomeTable.Pattern, value: Value)]] = [:]
    for outcome in OutcomeClass.allCases {
      guard let items = section.member(outcome.rawValue)?.items("a list such as [500, 5xx]") else { continue }
      elements[outcome] = items.compactMap { item in
        item.parsed("a status such as 500 or 5xx", OutcomeTable.Pattern.parse).map { ($0, item) }
      }
      lists[outcome] = elements[outcome]?.map(\.pattern)
    }
    section.refuse(
      ["deleted"], "is for rules alone: write all of outcomes as rules, such as [{status: 404, is: deleted}]")
    refuseOverlaps(elements)
  }

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

extension OutcomePatterns {
  /// Reads a list of rules, at the beginning of which the name of a preset may stand.
  private static func rules(_ value: Value) -> (OutcomePreset, [OutcomeRule]) {
    var items = value.items("a list of rules") ?? []
    if items.isEmpty { value.refuse("must have a rule such as \(OutcomeRule.example)") }
    if items.count > OutcomeRules.maxCount {
      value.refuse("must have \(OutcomeRules.maxCount) rules at most; write ranges and lists of statuses")
      return (.standard, [])
    }
    var named: OutcomePreset?
    if let first = items.first, !first.isMapping {
      named = first.choice("a rule such as \(OutcomeRule.example), or \(presets)") {
        OutcomePreset(rawValue: $0)
      }
      items.removeFirst()
    }
    var read: [(rule: OutcomeRule, place: Value)] = []
    for item in items {
      guard item.isMapping else {
        item.refuse("must be a rule such as \(OutcomeRule.example); a preset stands first")
        continue
      }
      var rule = OutcomeRule.schema.defaults
      item.section { OutcomeRule.schema.read($0, into: &rule) }
      if !item.hasFault { refuseCovered(rule, item, behind: read) }
      read.append((rule, item))
    }
    return (named ?? .standard, read.filter { !$0.place.hasFault }.map(\.rule))
  }

  /// Refuses a rule that no response meets, since an earlier one takes each of its statuses.
  private static func refuseCovered(
    _ rule: OutcomeRule, _ item: Value, behind earlier: [(rule: OutcomeRule, place: Value)]
  ) {
    let covering = earlier.filter { !$0.place.hasFault && $0.rule.covers(conditionsOf: rule) }
    let statuses = (200..<600).filter { rule.fits(status: $0) }
    let takers = statuses.compactMap { status in covering.first { $0.rule.fits(status: status) } }
    guard takers.count == statuses.count, let last = takers.last else { return }
    item.refuse(
      "is never met: the rule in line \(last.place.position.line) takes its responses; write it before that one, "
        + "or take it out")
  }
}

extension OutcomeTable.Pattern {
  /// Parses `500` or `5xx`. A status below 200 is no outcome (RFC 9110, section 15.2).
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

extension OutcomeTable {
  var shown: Shown {
    let rules = (rules?.list ?? []).dropLast(preset.rules.count).map(OutcomeRule.schema.shown)
    switch (preset, rules.isEmpty) {
    case (.standard, true):
      return .members(
        OutcomeClass.allCases.map { outcome in
          Shown.Member(outcome.rawValue, .list((own[outcome] ?? []).map(\.shown)))
        })
    case (.standard, false): return .list(rules)
    case (_, true): return .word(preset)
    case (_, false): return .list([.word(preset)] + rules)
    }
  }
}

extension OutcomeTable.Pattern {
  fileprivate var shown: Shown {
    switch self {
    case .status(let status): .number(status)
    case .hundred(let hundred): .text("\(hundred)xx")
    }
  }
}
