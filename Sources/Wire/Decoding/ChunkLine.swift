/// The line before a chunk: its size in hexadecimal, and extensions, which are checked and dropped.
///
/// Extensions are accepted because RFC 9112, section 7.1.1, requires recipients to ignore unknown ones. Only the plain
/// grammar is accepted, without white space, so that no reader can take a part of an extension for the end of the line.
struct ChunkLine {
  let size: Int
  let extensionBytes: Int
  /// The length of the line with its CRLF, in bytes.
  let length: Int

  /// Parses the line at the start of `bytes`; `nil` if more bytes are needed.
  init?(_ bytes: UnsafeRawBufferPointer) throws(WireError) {
    var at = 0
    var size = 0
    while at < bytes.count, let digit = ASCII.hexValue(bytes[at]) {
      // The limit of 2^59 is more than any transfer, and leaves room for one more digit.
      guard at < Self.maxDigits, size < 1 << 55 else { throw .badChunk }
      size = size << 4 | Int(digit)
      at += 1
    }
    guard at < bytes.count else { return nil }
    guard at > 0 else { throw .badChunk }
    let digits = at
    while at < bytes.count, bytes[at] != ASCII.carriageReturn {
      guard at < HeadLimits.chunkLineBytes else { throw .chunkExtensionsTooLong }
      guard bytes[at] >= ASCII.space, bytes[at] != 0x7F else { throw .badChunk }
      at += 1
    }
    guard at < bytes.count else { return nil }
    guard Self.areExtensions(UnsafeRawBufferPointer(rebasing: bytes[digits..<at])) else { throw .badChunk }
    guard at + 1 < bytes.count else { return nil }
    guard bytes[at + 1] == ASCII.lineFeed else { throw .badChunk }
    self.size = size
    extensionBytes = at - digits
    length = at + 2
  }

  /// The maximum number of digits. Sixteen spell any 64-bit number; more are leading zeros, which serve only to evade
  /// filters.
  private static let maxDigits = 16

  /// Whether the bytes are chunk extensions: `*( ";" token [ "=" ( token / quoted-string ) ] )`.
  private static func areExtensions(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var at = 0
    while at < bytes.count {
      guard bytes[at] == 0x3B else { return false }
      at += 1
      guard skipToken(bytes, &at) else { return false }
      guard at < bytes.count, bytes[at] == 0x3D else { continue }
      at += 1
      guard skipQuoted(bytes, &at) || skipToken(bytes, &at) else { return false }
    }
    return true
  }

  private static func skipToken(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> Bool {
    let start = at
    while at < bytes.count, ASCII.isTokenByte(bytes[at]) { at += 1 }
    return at > start
  }

  /// Skips a quoted string; false if there is none, or if it contains an escape.
  private static func skipQuoted(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> Bool {
    guard at < bytes.count, bytes[at] == 0x22 else { return false }
    at += 1
    while at < bytes.count, bytes[at] != 0x22 {
      guard bytes[at] != 0x5C else { return false }
      at += 1
    }
    guard at < bytes.count else { return false }
    at += 1
    return true
  }
}
