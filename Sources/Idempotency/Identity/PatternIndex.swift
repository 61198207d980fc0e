/// Patterns by their literals, so that a search among thousands returns only those that agree with a pattern.
///
/// Two patterns agree if one list of segments could match both: their literals are equal wherever both have one, and
/// the shorter one matches the rest. The tables are made when they are needed first.
final class PatternIndex {
  /// Segments, with `nil` for a placeholder.
  struct Pattern: Hashable {
    var segments: [[UInt8]?]
    /// Whether any further segments may follow.
    var matchesRest = false
  }

  private struct Form: Hashable {
    var isLiteral: [Bool]
    var matchesRest: Bool
  }

  /// The patterns of one form, with the numbers by their literals at each selection of places that was queried.
  private struct Group {
    let form: Form
    let members: [(number: Int, segments: [[UInt8]?])]
    private var tables: [[Int]: [[[UInt8]?]: [Int]]] = [:]

    init(_ form: Form, _ members: [(number: Int, segments: [[UInt8]?])]) {
      self.form = form
      self.members = members
    }

    func fits(_ pattern: Pattern) -> Bool {
      let (own, other) = (form.isLiteral.count, pattern.segments.count)
      return (form.matchesRest || own >= other) && (pattern.matchesRest || other >= own)
    }

    mutating func numbers(agreeingWith pattern: Pattern) -> [Int] {
      var places: [Int] = []
      for place in 0..<min(form.isLiteral.count, pattern.segments.count)
      where form.isLiteral[place] && pattern.segments[place] != nil {
        places.append(place)
      }
      let key = places.map { pattern.segments[$0] }
      if let table = tables[places] { return table[key] ?? [] }
      let table = Dictionary(grouping: members) { member in places.map { member.segments[$0] } }
        .mapValues { $0.map(\.number) }
      tables[places] = table
      return table[key] ?? []
    }
  }

  private var groups: [Group]

  /// Enters patterns under their indices; `nil` leaves an index out.
  init(_ patterns: [Pattern?]) {
    var members: [Form: [(number: Int, segments: [[UInt8]?])]] = [:]
    for (number, pattern) in patterns.enumerated() {
      guard let pattern else { continue }
      let form = Form(isLiteral: pattern.segments.map { $0 != nil }, matchesRest: pattern.matchesRest)
      members[form, default: []].append((number, pattern.segments))
    }
    groups = members.map { Group($0.key, $0.value) }
  }

  /// The indices of all patterns that agree with a pattern, in their order.
  func numbers(agreeingWith pattern: Pattern) -> [Int] {
    var found: [Int] = []
    for index in groups.indices where groups[index].fits(pattern) {
      found += groups[index].numbers(agreeingWith: pattern)
    }
    return found.sorted()
  }
}
