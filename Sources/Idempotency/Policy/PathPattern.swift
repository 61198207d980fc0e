import Wire

/// A path with placeholders, matched segment by segment against a normalised path (see `PathMatcher`).
public struct PathPattern: Hashable, Sendable {
  public enum Segment: Hashable, Sendable {
    case literal([UInt8])
    /// `{name}`: any one segment that is not empty.
    case any
  }

  /// The pattern as configured.
  public let text: String
  public let segments: [Segment]
  /// Whether the pattern ends with `/**`, which matches any further segments, or none.
  public let matchesRest: Bool

  public init(text: String, segments: [Segment], matchesRest: Bool) {
    self.text = text
    self.segments = segments
    self.matchesRest = matchesRest
  }

  /// The one path that it fits, as it is configured; `nil` where it fits several.
  public var literal: String? { matchesRest || segments.contains(.any) ? nil : text }

  static let slash: UInt8 = 0x2F
}
