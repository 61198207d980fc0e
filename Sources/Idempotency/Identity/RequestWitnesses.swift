import NIOCore
import Wire

/// A request that is made only to compare routes.
struct RequestWitness {
  let method: [UInt8]
  let host: [UInt8]
  let path: [UInt8]
  let head: MessageHead
  let operation: GraphQLOperation

  func route(in table: RouteTable) -> Route? {
    method.withUnsafeBytes { method in
      host.withUnsafeBytes { host in
        path.withUnsafeBytes { path in
          table.route(for: head, method: method, host: host, path: path, operation: operation)
        }
      }
    }
  }
}

/// Makes the requests for a comparison of routes.
///
/// For two routes, these are the least specific requests that both match: an earlier route that takes such a request
/// takes all requests of its kind. The spellings of a path are tried one by one, since routes may differ in the
/// spellings that they match.
struct RequestWitnesses {
  private let methods: [[UInt8]]
  private let longest: Int
  /// The kinds of operations between which any route distinguishes.
  private let operations: [GraphQLOperation]

  init(_ routes: [RoutePolicy]) {
    let listed = routes.flatMap(\.match.methods) + ["GET", "HEAD", "OPTIONS", "TRACE"]
    // The last element is a method that no route can name.
    methods = Set(listed).sorted().map { Array($0.utf8) } + [WitnessPath.other]
    operations = routes.contains { $0.match.graphql != nil } ? [.mutation, .other] : [.mutation]
    longest = routes.compactMap { $0.match.path?.segments.count }.max() ?? 0
  }

  /// The requests that two routes may both match.
  func common(_ first: RoutePolicy, _ second: RoutePolicy?) -> [RequestWitness] {
    let paths = WitnessPath.common(first.match.path, second?.match.path, longest: longest)
    let hosts = Set([first.match.host, second?.match.host].map(Self.host))
    let head = Self.head(Self.headers(first, second))
    return paths.flatMap { path in
      hosts.flatMap { host in
        methods.flatMap { method in
          operations.map {
            RequestWitness(method: method, host: host, path: path, head: head, operation: $0)
          }
        }
      }
    }
  }

  /// The properties of a second route that determine, besides its host, the requests in common with a first one.
  struct Kind: Hashable {
    /// The path's segments; `nil` for every path.
    private let segments: [PathPattern.Segment]?
    private let matchesRest: Bool
    private let headers: Set<RequiredHeader>

    init(_ second: RoutePolicy?) {
      segments = second?.match.path?.segments
      matchesRest = second?.match.path?.matchesRest ?? true
      headers = Set(second?.match.headers ?? [])
    }
  }

  private static func headers(_ first: RoutePolicy, _ second: RoutePolicy?) -> Set<RequiredHeader> {
    Set(first.match.headers + (second?.match.headers ?? []))
  }

  private static func head(_ headers: Set<RequiredHeader>) -> MessageHead {
    var head = MessageHead(start: .status(0, reason: 0..<0))
    // The configuration accepts only fields that a head can hold, so `append` does not fail.
    for header in headers { try? head.append(name: header.name, value: header.value) }
    return head
  }

  /// A host that matches the pattern, and matches another route's pattern only if all such hosts do.
  static func host(_ pattern: String?) -> [UInt8] {
    guard let pattern else { return WitnessPath.other }
    guard pattern.hasPrefix("*") else { return Array(pattern.utf8) }
    return WitnessPath.other + Array(pattern.utf8.dropFirst())
  }
}

/// Makes paths from patterns.
enum WitnessPath {
  /// A segment, host or method that no configuration can name.
  static let other: [UInt8] = [0x01]

  /// The paths that both patterns may match; a pattern that is `nil` matches every path.
  ///
  /// - Parameter longest: The number of segments in the longest pattern.
  static func common(_ first: PathPattern?, _ second: PathPattern?, longest: Int) -> [[UInt8]] {
    let (first, second) = (Shape(first), Shape(second))
    guard let counts = counts(first, second, longest: longest) else { return [] }
    let paths = counts.flatMap { count in
      [first.segments(count, or: second), second.segments(count, or: first)]
    }
    return Set(Set(paths).flatMap(spellings) + first.written + second.written).sorted {
      $0.lexicographicallyPrecedes($1)
    }
  }

  /// The possible numbers of segments in the paths; `nil` if no path matches both patterns.
  private static func counts(_ first: Shape, _ second: Shape, longest: Int) -> ClosedRange<Int>? {
    let minCount = max(first.literals.count, second.literals.count)
    let both = zip(first.literals, second.literals)
    let agree = both.allSatisfy { own, other in
      guard let own, let other else { return true }
      return own.map(ASCII.lowercased) == other.map(ASCII.lowercased)
    }
    guard agree, first.matchesRest || first.literals.count == minCount,
      second.matchesRest || second.literals.count == minCount
    else { return nil }
    return minCount...(first.matchesRest && second.matchesRest ? max(minCount, longest + 1) : minCount)
  }

  private static func joined(_ segments: [[UInt8]]) -> [UInt8] {
    segments.isEmpty ? [PathPattern.slash] : segments.flatMap { [PathPattern.slash] + $0 }
  }

  /// The path of these segments, and other spellings that a route may accept for it: of the whole path, and of each
  /// segment alone, since the other route may have a placeholder in that place and demand the spelling of the others.
  private static func spellings(_ segments: [[UInt8]]) -> [[UInt8]] {
    let path = joined(segments)
    var found = [
      path, path + [PathPattern.slash], [PathPattern.slash] + path, joined(segments.map(capitals)),
    ]
    for (index, segment) in segments.enumerated() {
      // An empty segment before it is a second slash.
      for other in [capitals(segment), segment + Array(";x=1".utf8), [PathPattern.slash] + segment] {
        var changed = segments
        changed[index] = other
        found.append(joined(changed))
      }
    }
    return found
  }

  private static func capitals(_ segment: [UInt8]) -> [UInt8] {
    segment.map { ASCII.isLetter($0) ? $0 & 0xDF : $0 }
  }
}

extension WitnessPath {
  /// A pattern reduced to the meaning of its segments, whatever their spelling.
  struct Shape {
    /// The literal segments, with `nil` for a placeholder.
    let literals: [[UInt8]?]
    let matchesRest: Bool
    /// Paths in the pattern's own spelling.
    let written: [[UInt8]]

    init(_ pattern: PathPattern?) {
      guard let pattern else {
        (literals, matchesRest, written) = ([], true, [])
        return
      }
      let segments = pattern.segments.map { segment -> [UInt8]? in
        if case .literal(let bytes) = segment { bytes } else { nil }
      }
      literals = segments.compactMap { segment -> [UInt8]?? in
        guard let segment else { return .some(nil) }
        let name = segment.prefix { $0 != UInt8(ascii: ";") }
        guard !name.isEmpty else { return nil }
        // Of a percent-encoded character the normalised path has one form, and lenient routes match both.
        return .some(name.withUnsafeBytes { Array(IteratorSequence(PercentText($0, as: .decoded))) })
      }
      matchesRest = pattern.matchesRest
      let filled = segments.map { $0 ?? WitnessPath.other }
      written = (matchesRest ? [filled, filled + [WitnessPath.other]] : [filled]).map(WitnessPath.joined)
    }

    /// The pattern for a search of those with which it has paths in common: `counts` finds some for two shapes if and
    /// only if their patterns agree.
    var pattern: PatternIndex.Pattern {
      PatternIndex.Pattern(
        segments: literals.map { $0.map { $0.map(ASCII.lowercased) } }, matchesRest: matchesRest)
    }

    /// The given number of segments, with placeholders filled from another pattern.
    func segments(_ count: Int, or other: Shape) -> [[UInt8]] {
      (0..<count).map { literal($0) ?? other.literal($0) ?? WitnessPath.other }
    }

    private func literal(_ index: Int) -> [UInt8]? { index < literals.count ? literals[index] : nil }
  }
}
