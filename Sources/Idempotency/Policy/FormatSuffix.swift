import Wire

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
