import NIOCore
import Wire

/// A path that two readers may take differently: it has an encoded slash, a backslash, a byte beyond ASCII, or the like.
///
/// It is compared with the patterns of protected routes by all of its readings at once: each slash, encoded or not, may
/// end a segment, or be a character of one. A path of which more is open than that may be any path.
struct AmbiguousPath {
  /// The maximum number of segments that are compared, one bit each. A path with more may be any path.
  private static let maxSegments = 62

  /// The segments, decoded, between all bytes that any reader takes for a slash; `nil` for a path that may be any path.
  private let segments: [[UInt8]]?

  /// - Parameter path: The path as it was received.
  init(_ path: UnsafeRawBufferPointer) { segments = Self.segments(of: path) }

  private static func segments(of path: UnsafeRawBufferPointer) -> [[UInt8]]? {
    guard PercentText.isWellFormed(path), !path.contains(PathSegments.semicolon) else { return nil }
    var segments: [[UInt8]] = []
    var segment: [UInt8] = []
    var text = PercentText(path, as: .decoded)
    while true {
      let next = text.next()
      guard let byte = next, byte != PathPattern.slash, byte != UInt8(ascii: "\\") else {
        if segment == [dot] || segment == [dot, dot] { return nil }
        if !segment.isEmpty { segments.append(segment) }
        guard next != nil else { break }
        guard segments.count <= maxSegments else { return nil }
        segment = []
        continue
      }
      // Some readers end a path there.
      if byte == 0 { return nil }
      segment.append(byte)
    }
    return segments.count <= maxSegments ? segments : nil
  }

  private static let dot = UInt8(ascii: ".")

  /// Whether a pattern fits any reading of the path, in any letter case.
  func mayFit(_ path: PathMatcher) -> Bool {
    guard let segments else { return true }
    // The numbers of segments that the pattern's beginning may have taken.
    var taken: UInt64 = 1
    for segment in path.segments.compactMap(PathMatcher.lenient) {
      switch segment {
      case .any:
        // One segment, or several of which the slashes between are characters: all numbers above the least one.
        taken = UInt64.max << UInt64(taken.trailingZeroBitCount + 1)
      case .literal(let name):
        var next: UInt64 = 0
        for index in segments.indices where taken & 1 << UInt64(index) != 0 && fits(name, index) {
          next |= 1 << UInt64(index + 1)
        }
        taken = next
      }
      taken &= 1 << UInt64(segments.count + 1) &- 1
      guard taken != 0 else { return false }
    }
    return path.matchesRest || taken & 1 << UInt64(segments.count) != 0
  }

  /// Whether a literal segment is the one at an index, the last one with a suffix, too.
  private func fits(_ name: [UInt8], _ index: Int) -> Bool {
    guard let segments else { return true }
    let own = segments[index].map(ASCII.lowercased)
    let wanted = name.map(ASCII.lowercased)
    guard own != wanted, index == segments.count - 1 else { return own == wanted }
    return ([PathPattern.slash] + own).withUnsafeBytes { path in
      FormatSuffix.removed(from: path).map { $0.dropFirst().elementsEqual(wanted) } ?? false
    }
  }
}

extension RouteTable {
  /// Whether any reader may take a request for one that a route protects, although its path has no normal form.
  ///
  /// - Parameter path: The path as it was received.
  public func mayProtect(
    _ head: MessageHead, host: ByteBuffer, path: ByteBuffer, query: ByteBuffer?
  ) -> Bool {
    // Another method may be meant than the written one.
    let isOpen =
      head.method == .other || head.declaresForm || head.mayOverrideMethod(query: query)
    let path = path.withUnsafeReadableBytes(AmbiguousPath.init)
    let method = head.slice(head.methodRange)
    return protectingRoute(head, host: host) { methods, pattern in
      (isOpen || method.withUnsafeReadableBytes(methods.contains)) && pattern.map(path.mayFit) ?? true
    } != nil
  }
}

/// A suffix of a path's last segment by which frameworks choose the form of a response: `/orders.json` runs what
/// `/orders` runs. It is a spelling, as a trailing slash is.
enum FormatSuffix {
  static let all: [StaticString] = [".json", ".xml", ".js", ".html", ".csv"]

  /// The path without its suffix, and without the slashes and parameters after it; `nil` if it has none.
  static func removed(from path: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard let segment = lastSegment(of: path), let dot = segment.lastIndex(of: UInt8(ascii: ".")),
      dot > segment.startIndex,
      all.contains(where: {
        ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: segment[dot...]), $0)
      })
    else { return nil }
    return UnsafeRawBufferPointer(rebasing: path[..<dot])
  }

  /// The last segment that is not empty, without its parameters.
  private static func lastSegment(of path: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer>? {
    var end = path.count
    while let slash = path[..<end].lastIndex(of: PathPattern.slash) {
      let segment = path[(slash + 1)..<end]
      let name = segment[..<(segment.firstIndex(of: PathSegments.semicolon) ?? segment.endIndex)]
      if !name.isEmpty { return name }
      end = slash
    }
    return nil
  }

  /// The first route that a path meets, or the one that it meets without its suffix if that protects more: a suffix
  /// takes no request from a route that protects it, nor from one that names it.
  ///
  /// - Parameters:
  ///   - isEnforced: Whether a route is enforced. Most requests ask for this alone, and copy no policy.
  ///   - first: The first route, by the path as it is given.
  @inline(__always)
  static func choose<Found>(
    _ path: UnsafeRawBufferPointer, policy: (Found) -> RoutePolicy, isEnforced: (Found) -> Bool,
    first: (UnsafeRawBufferPointer) -> Found?
  ) -> Found? {
    let found = first(path)
    if let found, isEnforced(found) { return found }
    return chooseMeant(found, path, policy: policy, first: first)
  }

  @inline(never)
  private static func chooseMeant<Found>(
    _ found: Found?, _ path: UnsafeRawBufferPointer, policy: (Found) -> RoutePolicy,
    first: (UnsafeRawBufferPointer) -> Found?
  ) -> Found? {
    guard let plain = removed(from: path), let meant = first(plain) else { return found }
    let (own, other) = (found.map(policy), policy(meant))
    guard other.isProtected, other.spelling != .exact, own?.match.path?.namesLastSegment != true else {
      return found
    }
    // A shadowed route comes behind one that is in force.
    return other.isEnforced || own?.isProtected != true ? meant : found
  }
}

extension PathPattern {
  /// Whether the last segment of the paths that it fits is one that it names.
  fileprivate var namesLastSegment: Bool {
    guard !matchesRest, case .literal? = segments.last else { return false }
    return true
  }
}
