import NIOCore
import Wire

/// A request that is made for comparisons alone.
struct RequestWitness {
  let method: [UInt8]
  let host: [UInt8]
  let path: [UInt8]
  let headers: Set<RequiredHeader>

  func route(in table: RouteTable) -> Route? {
    method.withUnsafeBytes { method in
      host.withUnsafeBytes { host in
        path.withUnsafeBytes { path in table.route(for: head, method: method, host: host, path: path) }
      }
    }
  }

  private var head: MessageHead {
    var head = MessageHead(start: .status(0, reason: 0..<0))
    // A configured field is one that a head can hold.
    for header in headers { try? head.append(name: header.name, value: header.value) }
    return head
  }
}

/// Makes the requests of which a comparison of routes consists.
///
/// For two routes they are the least special requests that both take: where an earlier route takes such a one from them,
/// it takes all of its kind. Spellings of a path are tried one by one, since routes may differ in which they take.
struct RequestWitnesses {
  private let methods: [[UInt8]]
  private let longest: Int

  init(_ routes: [RoutePolicy]) {
    let listed = routes.flatMap(\.match.methods) + ["GET", "HEAD", "OPTIONS", "TRACE"]
    // And one that no route can name.
    methods = Set(listed).sorted().map { Array($0.utf8) } + [WitnessPath.other]
    longest = routes.compactMap { $0.match.path?.segments.count }.max() ?? 0
  }

  /// The requests that two routes may both take.
  func common(_ first: RoutePolicy, _ second: RoutePolicy?) -> [RequestWitness] {
    let paths = WitnessPath.common(first.match.path, second?.match.path, longest: longest)
    let hosts = Set([first.match.host, second?.match.host].map(Self.host))
    let headers = Set(first.match.headers + (second?.match.headers ?? []))
    return paths.flatMap { path in
      hosts.flatMap { host in
        methods.map { RequestWitness(method: $0, host: host, path: path, headers: headers) }
      }
    }
  }

  /// A host that fits, and no other route's unless that fits all of them.
  private static func host(_ pattern: String?) -> [UInt8] {
    guard let pattern else { return WitnessPath.other }
    guard pattern.hasPrefix("*") else { return Array(pattern.utf8) }
    return WitnessPath.other + Array(pattern.utf8.dropFirst())
  }
}

/// Makes paths of patterns.
enum WitnessPath {
  /// A segment, host or method that no configuration can name.
  static let other: [UInt8] = [0x01]

  /// Paths that both patterns may fit; `nil` fits every path.
  ///
  /// - Parameter longest: The number of segments of the longest pattern.
  static func common(_ first: PathPattern?, _ second: PathPattern?, longest: Int) -> [[UInt8]] {
    let (first, second) = (Shape(first), Shape(second))
    guard let counts = counts(first, second, longest: longest) else { return [] }
    let paths = counts.flatMap { count in
      [first.segments(count, or: second), second.segments(count, or: first)].map(joined)
    }
    return Set(paths.flatMap(spellings) + first.written + second.written).sorted {
      $0.lexicographicallyPrecedes($1)
    }
  }

  /// The number of the paths' segments; `nil` where no path fits both.
  private static func counts(_ first: Shape, _ second: Shape, longest: Int) -> ClosedRange<Int>? {
    let least = max(first.literals.count, second.literals.count)
    let both = zip(first.literals, second.literals)
    let agree = both.allSatisfy { own, other in
      guard let own, let other else { return true }
      return own.map(ASCII.lowercased) == other.map(ASCII.lowercased)
    }
    guard agree, first.matchesRest || first.literals.count == least,
      second.matchesRest || second.literals.count == least
    else { return nil }
    return least...(first.matchesRest && second.matchesRest ? max(least, longest + 1) : least)
  }

  private static func joined(_ segments: [[UInt8]]) -> [UInt8] {
    segments.isEmpty ? [PathPattern.slash] : segments.flatMap { [PathPattern.slash] + $0 }
  }

  /// The path, and others that a route may take for the same.
  private static func spellings(_ path: [UInt8]) -> [[UInt8]] {
    let capitals = path.map { ASCII.isLetter($0) ? $0 & 0xDF : $0 }
    return [
      path, path + [PathPattern.slash], path + Array(";x=1".utf8), [PathPattern.slash] + path, capitals,
    ]
  }
}

extension WitnessPath {
  /// A pattern by what its segments stand for, however they are spelt.
  private struct Shape {
    /// `nil` for a place left open.
    let literals: [[UInt8]?]
    let matchesRest: Bool
    /// Paths as the pattern itself spells them.
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
        return name.isEmpty ? nil : .some(Array(name))
      }
      matchesRest = pattern.matchesRest
      let filled = segments.map { $0 ?? WitnessPath.other }
      written = (matchesRest ? [filled, filled + [WitnessPath.other]] : [filled]).map(WitnessPath.joined)
    }

    /// So many segments, those that are left open by another pattern's.
    func segments(_ count: Int, or other: Shape) -> [[UInt8]] {
      (0..<count).map { literal($0) ?? other.literal($0) ?? WitnessPath.other }
    }

    private func literal(_ index: Int) -> [UInt8]? { index < literals.count ? literals[index] : nil }
  }
}
