import NIOCore
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

/// The notations of paths in web frameworks: `/orders/:id`, `/orders/<int:id>`, `/orders/[id]`, `/orders/{id:\\d+}`,
/// `/orders/(.*)`, `/orders/$`.
enum PathNotation {
  /// The path in Semel's notation if any of its segments is in another notation, else `nil`.
  static func translated(_ text: String) -> String? {
    var text = text[...]
    let isAnchored = text.first == "^"
    if isAnchored { text.removeFirst() }
    guard text.first == "/" else { return nil }
    // The rest of the path in TanStack Router and Remix; in a regular expression the end, if a sign begins it.
    if !isAnchored, text.hasSuffix("/$") { text = text.dropLast() + "(.*)" }
    let isEnded = text.last == "$"
    if isEnded { text.removeLast() }
    let segments = split(text.dropFirst())
    var isForeign = isAnchored || isEnded
    let written = segments.enumerated().map { index, segment in
      guard let parameter = parameter(segment) else { return String(segment) }
      isForeign = true
      return parameter.isRest && index == segments.count - 1 ? "**" : "{\(parameter.name)}"
    }
    return isForeign ? "/" + written.joined(separator: "/") : nil
  }

  /// Splits a text at the slashes outside brackets.
  private static func split(_ text: Substring) -> [Substring] {
    var (segments, start, depth) = ([Substring](), text.startIndex, 0)
    for index in text.indices {
      switch text[index] {
      case "{", "(", "[", "<": depth += 1
      case "}", ")", "]", ">": depth -= 1
      case "/" where depth <= 0:
        segments.append(text[start..<index])
        start = text.index(after: index)
      default: break
      }
    }
    return segments + [text[start...]]
  }

  /// The placeholder for a segment in another notation; `nil` for a segment in Semel's own.
  private static func parameter(_ segment: Substring) -> (name: String, isRest: Bool)? {
    if segment.hasPrefix(":") {
      return (name(in: segment), segment.hasSuffix("*") || segment.hasSuffix("+"))
    }
    if segment.contains("<") || segment.contains(">") {
      let inner = segment.split(separator: "<").last.map { $0.prefix { $0 != ">" } } ?? segment
      let parts = inner.split(separator: ":")
      return (name(in: parts.last ?? inner), parts.count > 1 && parts.first == "path")
    }
    if segment.hasPrefix("["), segment.hasSuffix("]") {
      return (name(in: segment), segment.contains("..."))
    }
    if segment.hasPrefix("{"), segment.hasSuffix("}") {
      let inner = segment.dropFirst().dropLast()
      guard inner.contains(where: { ":?*+{".contains($0) }) || inner.hasSuffix("...") else { return nil }
      let isRepeated = "*+".contains(inner.last ?? " ") && inner.dropLast().allSatisfy(isWord)
      let isRest = [":path", "...", ":.*", ":.+"].contains(where: inner.hasSuffix)
      return (name(in: inner), isRest || isRepeated || inner.hasPrefix("*"))
    }
    let signs = ["^", "|", "(?", ".*", ".+", "\\d", "\\w", "[0-9", "[a-z", "[A-Z", "[^"]
    guard signs.contains(where: segment.contains) else { return nil }
    return ("id", segment.contains(".*") || segment.contains(".+"))
  }

  /// The first word in a text, or `id` if there is none.
  private static func name(in text: Substring) -> String {
    let word = text.drop { !isWord($0) }.prefix(while: isWord)
    return word.isEmpty ? "id" : String(word)
  }

  private static func isWord(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || character == "_")
  }
}

/// The shape of a request's path in the notation of `match.path`: words stand as they are, and whatever may be an id or
/// a secret is `{id}`.
///
/// A log may hold it: it has the characters of words alone, and a bounded length. A name that is one plain word is not
/// told from a word of the API.
public enum PathShape {
  /// The maximum number of segments. The rest of a longer path is `**`.
  private static let maxSegments = 8
  /// The maximum length of a word, in bytes. Hardly any word of an API is longer, and most tokens are.
  private static let maxWord = 24
  /// The length from which on a word of hexadecimal letters is taken for a digest.
  private static let minDigest = 8

  /// The shape of a normalised path.
  public static func text(of path: ByteBuffer) -> String {
    path.withUnsafeReadableBytes { path in
      var segments = PathSegments(path)
      var text = ""
      var count = 0
      while let segment = segments.next() {
        guard count < maxSegments else { return text + "/**" }
        text += isName(segment) ? "/" + String(decoding: segment, as: UTF8.self) : "/{id}"
        count += 1
      }
      return text.isEmpty ? "/" : text
    }
  }

  /// Whether a segment consists of words, such as `orders`, `order-lines`, `v2` or `Orders.json`.
  private static func isName(_ segment: UnsafeRawBufferPointer) -> Bool {
    segment.count <= 2 * maxWord
      && segment.split(omittingEmptySubsequences: false) { "-_.".utf8.contains($0) }.allSatisfy(isWord)
  }

  /// Whether a part is a word: letters in lower case, with a capital at the beginning of each word in it, or a short
  /// one in capitals. Two digits may stand at its end, as in `v2` and `oauth2`.
  private static func isWord(_ part: Slice<UnsafeRawBufferPointer>) -> Bool {
    let digits = part.reversed().prefix { isDigit($0) }.count
    let letters = part.dropLast(digits)
    guard !letters.isEmpty, digits <= 2, part.count <= maxWord, letters.allSatisfy(isLetter) else {
      return false
    }
    if part.count >= minDigest, part.allSatisfy(isHexadecimal) { return false }
    let isCapitals = letters.allSatisfy(isCapital)
    if isCapitals { return letters.count <= minDigest }
    return !zip(letters, letters.dropFirst()).contains { isCapital($0) && isCapital($1) }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte }
  private static func isCapital(_ byte: UInt8) -> Bool { 0x41...0x5A ~= byte }
  private static func isLetter(_ byte: UInt8) -> Bool { isCapital(byte) || 0x61...0x7A ~= byte }
  private static func isHexadecimal(_ byte: UInt8) -> Bool { isDigit(byte) || 0x61...0x66 ~= byte | 0x20 }
}
