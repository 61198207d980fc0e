import Idempotency
import Wire

/// Routes by their hosts and paths, so that the time for a file does not grow with the square of its routes. It narrows
/// the search, and `RoutePolicy.covers` decides. Letter case, methods and headers do not count.
struct CoverIndex {
  /// The conditions on host and path that routes have in common, but for the names.
  private struct Shape: Hashable {
    /// Whether paths are compared as they are written, with their empty segments.
    var isExact: Bool
    var hasHost: Bool
    /// For each segment of the path, whether it is a name.
    var names: [Bool]
    var matchesRest: Bool
  }

  private struct Place: Hashable {
    var shape: Shape
    var host: String?
    var names: [[UInt8]]
  }

  private var shapes: Set<Shape> = []
  private var numbers: [Place: [Int]] = [:]
  /// Routes whose names are not known without decoding them.
  private var encoded: [Int] = []
  private var count = 0

  /// Enters a route under the next number, from 0.
  mutating func add(_ policy: RoutePolicy) {
    let path = policy.match.path
    // `/**` takes every path in each spelling.
    let takesAll = path.map { $0.segments.isEmpty && $0.matchesRest } ?? true
    let isExact = policy.spelling == .exact && !takesAll
    if let segments = Self.segments(of: path, isExact: isExact) {
      let host = Self.host(of: policy)
      let shape = Shape(
        isExact: isExact, hasHost: host != nil, names: segments.map { $0 != nil },
        matchesRest: path?.matchesRest ?? true)
      shapes.insert(shape)
      let place = Place(shape: shape, host: host, names: segments.compactMap(\.self))
      numbers[place, default: []].append(count)
    } else {
      encoded.append(count)
    }
    count += 1
  }

  /// The numbers of all routes so far that may cover a route, in their order.
  func candidates(for policy: RoutePolicy) -> [Int] {
    let path = policy.match.path
    guard let lenient = Self.segments(of: path, isExact: false) else { return Array(0..<count) }
    let exact = policy.spelling == .exact ? Self.segments(of: path, isExact: true) : nil
    let host = Self.host(of: policy)
    var found = encoded
    for shape in shapes where !shape.hasHost || host != nil {
      guard let segments = shape.isExact ? exact : lenient,
        let names = Self.names(of: segments, path?.matchesRest ?? true, in: shape)
      else { continue }
      found += numbers[Place(shape: shape, host: shape.hasHost ? host : nil, names: names)] ?? []
    }
    return found.sorted()
  }

  /// The names of a path where a shape has names; `nil` if it has other segments there, or its length does not fit.
  private static func names(
    of segments: [[UInt8]?], _ matchesRest: Bool, in shape: Shape
  ) -> [[UInt8]]? {
    let fits =
      shape.matchesRest
      ? shape.names.count <= segments.count : shape.names.count == segments.count && !matchesRest
    guard fits else { return nil }
    var names: [[UInt8]] = []
    for (isName, segment) in zip(shape.names, segments) where isName {
      guard let segment else { return nil }
      names.append(segment)
    }
    return names
  }

  /// The segments of a path in lower case, `nil` for a placeholder; `nil` if it has to be decoded first.
  private static func segments(of path: PathPattern?, isExact: Bool) -> [[UInt8]?]? {
    var segments: [[UInt8]?] = []
    for segment in path?.segments ?? [] {
      guard case .literal(let name) = segment else {
        segments.append(nil)
        continue
      }
      if !isExact {
        guard !name.contains(UInt8(ascii: "%")), !name.contains(UInt8(ascii: ";")) else { return nil }
        guard !name.isEmpty else { continue }
      }
      segments.append(name.map(ASCII.lowercased))
    }
    return segments
  }

  /// The one host of a route's requests; `nil` if there may be several.
  private static func host(of policy: RoutePolicy) -> String? {
    policy.match.host.flatMap { $0.hasPrefix("*.") ? nil : $0.lowercased() }
  }
}
