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

extension PathPattern {
  /// The reason why a text is not a pattern, as the end of a sentence that begins with the setting's name.
  public struct ParsingError: Error, Hashable {
    public let reason: String
  }

  /// Parses a pattern such as `/v1/orders/{id}` or `/v1/**`.
  ///
  /// Literal segments are brought into the form of a normalised path: unreserved characters decoded, percent-encoding
  /// in upper case.
  public init(parsing text: String) throws(ParsingError) {
    if let translated = PathNotation.translated(text) {
      throw ParsingError(
        reason: "is in the notation of another framework; write \(translated) "
          + "({name} is one segment, ** at the end is the rest)")
    }
    guard text.utf8.first == Self.slash else {
      throw ParsingError(reason: "must begin with a slash, such as /v1/orders/{id} or /v1/**")
    }
    guard text.last?.isWhitespace != true else {
      throw ParsingError(reason: "must not end with white space: no request has that path")
    }
    var parts = text.utf8.dropFirst().split(separator: Self.slash, omittingEmptySubsequences: false)
    let matchesRest = parts.last.map { $0.elementsEqual("**".utf8) } ?? false
    if matchesRest { parts.removeLast() }
    var segments: [Segment] = []
    for part in parts { segments.append(try Self.segment(part)) }
    self.init(text: text, segments: segments, matchesRest: matchesRest)
  }

  private static func segment(_ part: Substring.UTF8View) throws(ParsingError) -> Segment {
    if part.contains(UInt8(ascii: "*")) {
      throw ParsingError(reason: "may hold ** only as its last segment; one segment is {name}")
    }
    if part.contains(UInt8(ascii: "{")) || part.contains(UInt8(ascii: "}")) {
      guard isPlaceholder(part) else {
        throw ParsingError(reason: "must have {name} as a whole segment; a name has letters, digits, - and _")
      }
      return .any
    }
    let bytes = try normalised(part)
    if bytes.elementsEqual(".".utf8) || bytes.elementsEqual("..".utf8) {
      throw ParsingError(reason: "must not have . or .. as a segment: they are removed before it is matched")
    }
    return .literal(bytes)
  }

  private static func isPlaceholder(_ part: Substring.UTF8View) -> Bool {
    guard part.count > 2, part.first == UInt8(ascii: "{"), part.last == UInt8(ascii: "}") else {
      return false
    }
    return part.dropFirst().dropLast().allSatisfy { ASCII.isLetterOrDigit($0) || "-_".utf8.contains($0) }
  }

  private static func normalised(_ part: Substring.UTF8View) throws(ParsingError) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = part
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(ASCII.hexValue),
          let low = rest.popFirst().flatMap(ASCII.hexValue)
        else {
          throw ParsingError(reason: "has a % that two hexadecimal digits do not follow")
        }
        let value = high << 4 | low
        if [slash, UInt8(ascii: "\\"), 0].contains(value) {
          throw ParsingError(
            reason: "must not have an encoded slash, backslash or NUL: such requests are refused")
        }
        if ASCII.isUnreserved(value) { bytes.append(value) } else { appendEncoded(value, to: &bytes) }
      case UInt8(ascii: "?"), UInt8(ascii: "#"):
        throw ParsingError(reason: "must not have a query or a fragment: only the path is matched")
      case UInt8(ascii: "\\"):
        throw ParsingError(reason: "must not have a backslash: such requests are refused")
      case 0x21...0x7E:
        bytes.append(byte)
      default:
        // A request line cannot contain these bytes without encoding.
        appendEncoded(byte, to: &bytes)
      }
    }
    return bytes
  }

  private static func appendEncoded(_ byte: UInt8, to bytes: inout [UInt8]) {
    bytes += [UInt8(ascii: "%"), ASCII.hexDigit(byte >> 4), ASCII.hexDigit(byte & 15)]
  }
}
