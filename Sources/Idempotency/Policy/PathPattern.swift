import Wire

/// A path with places left open, matched segment by segment against a normalised path.
public struct PathPattern: Hashable, Sendable {
  public enum Segment: Hashable, Sendable {
    case literal([UInt8])
    /// `{name}`: any one segment that is not empty.
    case any
  }

  public let text: String
  public let segments: [Segment]
  /// Whether it ends with `/**`: whatever follows, also nothing.
  public let matchesRest: Bool

  public init(text: String, segments: [Segment], matchesRest: Bool) {
    self.text = text
    self.segments = segments
    self.matchesRest = matchesRest
  }

  /// Whether a normalised path fits; `/v1/**` fits `/v1` too. Allocates nothing.
  public func matches(_ path: UnsafeRawBufferPointer) -> Bool {
    guard path.first == Self.slash else { return false }
    // Past the last segment, `start` stands one behind the path's end.
    var start = 1
    for segment in segments {
      guard start <= path.count else { return false }
      var end = start
      while end < path.count, path[end] != Self.slash { end += 1 }
      switch segment {
      case .any:
        guard end > start else { return false }
      case .literal(let bytes):
        guard bytes.elementsEqual(path[start..<end]) else { return false }
      }
      start = end + 1
    }
    return matchesRest || start > path.count
  }

  static let slash: UInt8 = 0x2F
}
