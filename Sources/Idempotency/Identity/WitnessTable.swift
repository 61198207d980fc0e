import Wire

/// A list of routes, prepared for the search of the first one that matches a witness.
///
/// The result is that of a `RouteTable` of the whole list, which tries all routes. This table looks up the routes whose
/// host and path may match, and a `RouteTable` of each one decides.
final class WitnessTable {
  private let policies: [RoutePolicy]
  private let tables: [RouteTable]
  /// The routes that compare segments as they are meant, by their hosts and paths in lower case.
  private let lenient: PatternIndex
  /// The routes that compare paths as they are written.
  private let exact: PatternIndex
  /// The result of the latest search by host and path, since successive witnesses differ in their methods only.
  private var latest: (host: [UInt8], path: [UInt8], numbers: [Int])?

  init(_ policies: [RoutePolicy]) {
    self.policies = policies
    tables = policies.map { RouteTable([$0]) }
    lenient = PatternIndex(policies.map { $0.spelling == .exact ? nil : Self.pattern($0) })
    exact = PatternIndex(policies.map { $0.spelling == .exact ? Self.pattern($0) : nil })
  }

  /// Whether the route at an index, alone, matches the witness.
  func matches(_ number: Int, _ witness: RequestWitness) -> Bool { witness.route(in: tables[number]) != nil }

  /// The index of the first route that matches the witness; `nil` if none does.
  func first(_ witness: RequestWitness) -> Int? {
    witness.path.withUnsafeBytes { path in
      FormatSuffix.choose(path, policy: { policies[$0] }, isEnforced: { policies[$0].isEnforced }) { path in
        let plain = witness.at(Array(path))
        return candidates(host: plain.host, path: plain.path).first { plain.isTaken(by: tables[$0]) }
      }
    }
  }

  /// The indices of all routes that may match a host and a path, in their order.
  func candidates(host: [UInt8], path: [UInt8]) -> [Int] {
    if let latest, latest.path == path, latest.host == host { return latest.numbers }
    let name: [UInt8]? = host.map(ASCII.lowercased)
    let meant = PatternIndex.Pattern(segments: [name] + Self.meant(path))
    let written = PatternIndex.Pattern(segments: [name] + Self.written(path))
    let numbers = (lenient.numbers(agreeingWith: meant) + exact.numbers(agreeingWith: written)).sorted()
    latest = (host, path, numbers)
    return numbers
  }

  /// The segments as lenient routes compare them, in lower case as for caseless ones.
  private static func meant(_ path: [UInt8]) -> [[UInt8]?] {
    path.withUnsafeBytes { bytes in
      var segments: [[UInt8]?] = []
      var found = PathSegments(bytes)
      while let name = found.next() {
        segments.append(IteratorSequence(PercentText(name, as: .decoded)).map(ASCII.lowercased))
      }
      return segments
    }
  }

  /// The segments as exact routes compare them, empty ones included.
  private static func written(_ path: [UInt8]) -> [[UInt8]?] {
    path.dropFirst().split(separator: PathPattern.slash, omittingEmptySubsequences: false).map { Array($0) }
  }

  /// The host, or a placeholder for several, and the path as the route compares it.
  private static func pattern(_ policy: RoutePolicy) -> PatternIndex.Pattern {
    let host = policy.match.host.flatMap { host -> [UInt8]? in
      host.hasPrefix("*.") ? nil : host.utf8.map(ASCII.lowercased)
    }
    let path = policy.match.path.map { PathMatcher($0, spelling: policy.spelling) }
    let segments = (path?.segments ?? []).map { segment -> [UInt8]? in
      guard case .literal(let bytes) = segment else { return nil }
      return policy.spelling == .exact ? bytes : bytes.map(ASCII.lowercased)
    }
    return PatternIndex.Pattern(segments: [host] + segments, matchesRest: path?.matchesRest ?? true)
  }
}
