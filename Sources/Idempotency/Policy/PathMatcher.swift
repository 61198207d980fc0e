import Wire

/// A pattern prepared for comparison with normalised paths, in a route's spelling. A comparison allocates nothing.
public struct PathMatcher: Hashable, Sendable {
  let segments: [PathPattern.Segment]
  let matchesRest: Bool
  let spelling: RoutePolicy.Spelling

  public init(_ pattern: PathPattern, spelling: RoutePolicy.Spelling) {
    segments = spelling == .exact ? pattern.segments : pattern.segments.compactMap(Self.lenient)
    matchesRest = pattern.matchesRest
    self.spelling = spelling
  }

  /// A segment decoded and without its parameters; `nil` for an empty segment, since those of a path are skipped, too.
  static func lenient(_ segment: PathPattern.Segment) -> PathPattern.Segment? {
    guard case .literal(let bytes) = segment else { return segment }
    let name = bytes.prefix { $0 != PathSegments.semicolon }
    return name.isEmpty
      ? nil : .literal(name.withUnsafeBytes { Array(IteratorSequence(PercentText($0, as: .decoded))) })
  }

  /// Whether a normalised path matches. `/v1/**` matches `/v1`, too.
  public func matches(_ path: UnsafeRawBufferPointer) -> Bool {
    guard path.first == PathPattern.slash else { return false }
    return spelling == .exact ? matchesExactly(path) : matchesLeniently(path)
  }

  private func matchesLeniently(_ path: UnsafeRawBufferPointer) -> Bool {
    var found = PathSegments(path)
    for segment in segments {
      guard let name = found.next() else { return false }
      guard case .literal(let bytes) = segment else { continue }
      guard found.isEscaped ? fits(bytes, escaped: name) : fits(bytes, name) else { return false }
    }
    return matchesRest || found.next() == nil
  }

  private func fits(_ bytes: [UInt8], _ name: UnsafeRawBufferPointer) -> Bool {
    bytes.withUnsafeBytes {
      spelling == .caseless ? ASCII.equalsIgnoringCase($0, name) : ASCII.equals($0, name)
    }
  }

  private func fits(_ bytes: [UInt8], escaped name: UnsafeRawBufferPointer) -> Bool {
    var decoded = PercentText(name, as: .decoded)
    for byte in bytes {
      guard let next = decoded.next() else { return false }
      guard byte == next || spelling == .caseless && ASCII.lowercased(byte) == ASCII.lowercased(next) else {
        return false
      }
    }
    return decoded.next() == nil
  }

  private func matchesExactly(_ path: UnsafeRawBufferPointer) -> Bool {
    // The offset of the next segment: one greater than the path's length if there is none.
    var start = 1
    for segment in segments {
      guard start <= path.count else { return false }
      var end = start
      while end < path.count, path[end] != PathPattern.slash { end += 1 }
      switch segment {
      case .any:
        guard end > start else { return false }
      case .literal(let bytes):
        let name = UnsafeRawBufferPointer(rebasing: path[start..<end])
        guard bytes.withUnsafeBytes({ ASCII.equals($0, name) }) else { return false }
      }
      start = end + 1
    }
    return matchesRest || start > path.count
  }
}

/// The non-empty segments of a normalised path, without their parameters (RFC 3986, section 3.3).
struct PathSegments {
  static let semicolon: UInt8 = 0x3B

  private static let percent: UInt8 = 0x25

  private let path: UnsafeRawBufferPointer
  /// The offset of the slash before the next segment.
  private var at = 0
  /// Whether the segment that `next` returned last is percent-encoded.
  private(set) var isEscaped = false

  init(_ path: UnsafeRawBufferPointer) { self.path = path }

  mutating func next() -> UnsafeRawBufferPointer? {
    while at < path.count {
      let start = at + 1
      var end = start
      isEscaped = false
      while end < path.count, path[end] != PathPattern.slash, path[end] != Self.semicolon {
        if path[end] == Self.percent { isEscaped = true }
        end += 1
      }
      at = end
      while at < path.count, path[at] != PathPattern.slash { at += 1 }
      if end > start { return UnsafeRawBufferPointer(rebasing: path[start..<end]) }
    }
    return nil
  }
}
