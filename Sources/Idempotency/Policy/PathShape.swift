import NIOCore
import Wire

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
