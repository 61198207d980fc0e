import Wire

/// Makes the paths of the requests for a comparison of routes.
struct WitnessPaths {
  /// A segment, host or method that no configuration can name.
  static let other: [UInt8] = [0x01]

  /// The number of segments in the longest pattern.
  private let longest: Int
  /// The literal segments of all patterns, each as it is written and as it is meant.
  private let literals: Set<[UInt8]>
  /// Whether some routes ignore the letter case and others do not.
  private let mixesCases: Bool
  /// Whether any route matches paths as they are written. All others ignore second slashes and parameters.
  private let hasExact: Bool

  init(_ routes: [RoutePolicy]) {
    let patterns = routes.compactMap(\.match.path)
    longest = patterns.map(\.segments.count).max() ?? 0
    literals = Set(
      patterns.flatMap(\.segments).flatMap { [$0, PathMatcher.lenient($0) ?? $0] }.compactMap(\.bytes))
    let spellings = Set(routes.filter { $0.match.path != nil }.map(\.spelling))
    mixesCases = spellings.contains(.caseless) && spellings.count > 1
    hasExact = spellings.contains(.exact)
  }

  /// The paths that two routes may both match; no second route matches every path.
  func common(_ first: RoutePolicy, _ second: RoutePolicy?) -> [[UInt8]] {
    let (first, second) = (Shape(first), Shape(second))
    guard let counts = counts(first, second) else { return [] }
    let paths = counts.flatMap { [first.path($0, or: second), second.path($0, or: first)] }
    return Set(Set(paths).flatMap { spellings(of: $0, for: [first, second]) })
      .sorted {
        $0.lexicographicallyPrecedes($1)
      }
  }

  /// The possible numbers of segments in the paths; `nil` if no path matches both patterns.
  private func counts(_ first: Shape, _ second: Shape) -> ClosedRange<Int>? {
    let minCount = max(first.literals.count, second.literals.count)
    let both = zip(first.literals, second.literals)
    let agree = both.allSatisfy { own, other in
      guard let own, let other else { return true }
      return Self.comparable(own) == Self.comparable(other)
    }
    guard agree, first.matchesRest || first.literals.count == minCount,
      second.matchesRest || second.literals.count == minCount
    else { return nil }
    return minCount...(first.matchesRest && second.matchesRest ? max(minCount, longest + 1) : minCount)
  }
}

extension WitnessPaths {
  /// A literal in lower case and without a format suffix, which lenient routes ignore in a last segment.
  static func comparable(_ literal: [UInt8]) -> [UInt8] {
    let lowercased = literal.map(ASCII.lowercased)
    return ([PathPattern.slash] + lowercased).withUnsafeBytes { path in
      FormatSuffix.removed(from: path).map { Array($0.dropFirst()) } ?? lowercased
    }
  }

  /// The path in its own spelling, and in the loosest one that both routes match.
  ///
  /// A third route that matches the loosest spelling matches the stricter ones, too, since no pattern has a literal in
  /// that spelling. The loosest one is therefore a request of the two routes if any other spelling is. The exception is
  /// a trailing slash, which the pattern of an exact route may have.
  private func spellings(of path: Parts, for routes: [Shape]) -> [[UInt8]] {
    let loosest = recased(path, for: routes).map { hasExact ? loosened($0, for: routes) : $0 }
    let paths = ([path] + loosest).map(\.bytes)
    return hasExact ? paths + paths.map { $0 + [PathPattern.slash] } : paths
  }

  /// The path in a letter case that no pattern has, in each place whose letter case both routes ignore.
  ///
  /// For some segments, such as `v1` beside `V1`, there is no such case. If there are any, the results are those with
  /// none of them in the other case, with all, and with each one alone.
  private func recased(_ path: Parts, for routes: [Shape]) -> [Parts] {
    guard mixesCases else { return [path] }
    var unused = path
    var others: [(place: Int, segment: [UInt8])] = []
    for (place, segment) in path.segments.enumerated()
    where routes.allSatisfy({ $0.ignoresCase(at: place) }) {
      let cases = Self.cases(of: segment)
      if let own = cases.first(where: { !literals.contains($0) }) {
        unused.segments[place] = own
      } else if let other = cases.first {
        others.append((place, other))
      }
    }
    let selections = others.isEmpty ? [[]] : [[], others] + others.map { [$0] }
    return selections.map { selection in
      selection.reduce(into: unused) { $0.segments[$1.place] = $1.segment }
    }
  }

  /// The segment in other letter cases. The digits of an encoded byte have one form.
  private static func cases(of segment: [UInt8]) -> [[UInt8]] {
    let letters = segment.indices.filter { index in
      ASCII.isLetter(segment[index]) && !segment[max(0, index - 2)..<index].contains(UInt8(ascii: "%"))
    }
    var (capitals, small) = (segment, segment)
    for index in letters {
      capitals[index] &= 0xDF
      small[index] |= 0x20
    }
    var mixed = capitals
    if let first = letters.first { mixed[first] |= 0x20 }
    return [capitals, small, mixed].filter { $0 != segment }
  }

  /// The path with parameters and further slashes, in each place in which both routes ignore them.
  private func loosened(_ path: Parts, for routes: [Shape]) -> Parts {
    var loosened = path
    for place in path.segments.indices
    where path.segments[place] != Self.other && routes.allSatisfy({ $0.ignoresParameters(at: place) }) {
      loosened.segments[place] += [PathSegments.semicolon] + Self.other
    }
    let slashed = path.segments.indices.first { place in
      routes.allSatisfy { $0.ignoresSlashes(before: place) }
    }
    // The first place is the loosest, since exact routes match further slashes only by a `**` before them. No pattern has
    // as many.
    if let slashed { loosened.skipped[slashed] += Array(repeating: PathPattern.slash, count: longest + 1) }
    return loosened
  }
}

extension WitnessPaths {
  /// A path in parts, each of which may be spelled in another way.
  struct Parts: Hashable {
    /// The segments that lenient routes compare, as they are written.
    var segments: [[UInt8]]
    /// The bytes that lenient routes skip before each segment and after the last one, such as a second slash.
    var skipped: [[UInt8]]

    var bytes: [UInt8] {
      let bytes = zip(skipped, segments).flatMap { $0 + [PathPattern.slash] + $1 } + (skipped.last ?? [])
      return bytes.isEmpty ? [PathPattern.slash] : bytes
    }
  }

  /// A route's pattern, reduced to the segments that lenient routes compare.
  struct Shape {
    /// The meaning of each literal segment, whatever its spelling, with `nil` for a placeholder.
    let literals: [[UInt8]?]
    let matchesRest: Bool
    private let spelling: RoutePolicy.Spelling
    /// The literal segments as they are written, with `nil` for a placeholder.
    private let written: [[UInt8]?]
    /// The bytes between them, as in `Parts`.
    private let skipped: [[UInt8]]

    /// The shape of a route; that of no route, or of one without a path, matches every path.
    init(_ route: RoutePolicy?) {
      var literals: [[UInt8]?] = []
      var written: [[UInt8]?] = []
      var skipped: [[UInt8]] = [[]]
      for segment in route?.match.path?.segments ?? [] {
        if let meant = PathMatcher.lenient(segment) {
          literals.append(meant.bytes)
          written.append(segment.bytes)
          skipped.append([])
        } else {
          skipped[literals.count] += [PathPattern.slash] + (segment.bytes ?? [])
        }
      }
      (self.literals, self.written, self.skipped) = (literals, written, skipped)
      matchesRest = route?.match.path?.matchesRest ?? true
      spelling = route?.spelling ?? .lenient
    }

    /// The pattern for a search of those with which it has paths in common: `counts` finds some for two shapes if and
    /// only if their patterns agree.
    var pattern: PatternIndex.Pattern {
      PatternIndex.Pattern(
        segments: literals.map { $0.map(WitnessPaths.comparable) }, matchesRest: matchesRest)
    }

    /// A path of the given number of segments in the pattern's spelling, with placeholders filled from another pattern.
    func path(_ count: Int, or other: Shape) -> Parts {
      Parts(
        segments: (0..<count).map { written[at: $0] ?? other.written[at: $0] ?? WitnessPaths.other },
        skipped: (0...count).map { $0 < skipped.count ? skipped[$0] : [] })
    }

    /// Whether the route matches the segment at this place in any letter case.
    func ignoresCase(at place: Int) -> Bool { written[at: place] == nil || spelling == .caseless }

    /// Whether the route matches the segment at this place with parameters, too.
    func ignoresParameters(at place: Int) -> Bool { written[at: place] == nil || spelling != .exact }

    /// Whether the route matches a path with further slashes before this place, too.
    func ignoresSlashes(before place: Int) -> Bool { place >= written.count || spelling != .exact }
  }
}

extension [[UInt8]?] {
  /// The literal at an index; `nil` for a placeholder, and behind the last segment.
  fileprivate subscript(at index: Int) -> [UInt8]? { index < count ? self[index] : nil }
}

extension PathPattern.Segment {
  /// The text of a literal; `nil` for a placeholder.
  fileprivate var bytes: [UInt8]? {
    if case .literal(let bytes) = self { bytes } else { nil }
  }
}
