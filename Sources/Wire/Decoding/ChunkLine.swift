/// The line before a chunk: its size in hexadecimal, and extensions, which are checked and dropped.
///
/// Extensions are accepted because RFC 9112, section 7.1.1, requires recipients to ignore unknown ones. The strict
/// reading accepts only the plain grammar, without white space, so that no reader can take a part of an extension for the
/// end of the line. The tolerant one also accepts white space, which servers pad sizes with, and escapes. A line feed and
/// all other control bytes are refused by both.
struct ChunkLine {
  let size: Int
  let extensionBytes: Int
  /// The length of the line with its CRLF, in bytes.
  let length: Int

  /// Parses the line at the start of `bytes`; `nil` if more bytes are needed.
  init?(_ bytes: UnsafeRawBufferPointer, reading: Reading = .strict) throws(WireError) {
    var at = 0
    var size = 0
    if reading == .tolerant { Self.skipSpace(bytes, &at) }
    guard at < HeadLimits.chunkLineBytes else { throw .chunkExtensionsTooLong }
    let first = at
    while at < bytes.count, let digit = ASCII.hexValue(bytes[at]) {
      // The limit of 2^59 is more than any transfer, and leaves room for one more digit.
      guard at - first < Self.maxDigits, size < 1 << 55 else { throw .badChunk }
      size = size << 4 | Int(digit)
      at += 1
    }
    guard at < bytes.count else { return nil }
    guard at > first else { throw .badChunk }
    let digits = at
    while at < bytes.count, bytes[at] != ASCII.carriageReturn {
      guard at < HeadLimits.chunkLineBytes else { throw .chunkExtensionsTooLong }
      guard Self.mayStand(bytes[at], reading) else { throw .badChunk }
      at += 1
    }
    guard at < bytes.count else { return nil }
    guard Self.areExtensions(UnsafeRawBufferPointer(rebasing: bytes[digits..<at]), reading) else {
      throw .badChunk
    }
    guard at + 1 < bytes.count else { return nil }
    guard bytes[at + 1] == ASCII.lineFeed else { throw .badChunk }
    self.size = size
    extensionBytes = at - digits
    length = at + 2
  }

  /// The maximum number of digits. Sixteen spell any 64-bit number; more are leading zeros, which serve only to evade
  /// filters.
  private static let maxDigits = 16

  private static func mayStand(_ byte: UInt8, _ reading: Reading) -> Bool {
    byte >= ASCII.space && byte != 0x7F || byte == ASCII.tab && reading == .tolerant
  }

  /// Whether the bytes are chunk extensions: `*( ";" token [ "=" ( token / quoted-string ) ] )`. The tolerant reading
  /// accepts white space between all of these, and behind the last.
  private static func areExtensions(_ bytes: UnsafeRawBufferPointer, _ reading: Reading) -> Bool {
    var at = 0
    func skip() { if reading == .tolerant { skipSpace(bytes, &at) } }
    skip()
    while at < bytes.count {
      guard bytes[at] == 0x3B else { return false }
      at += 1
      skip()
      guard skipToken(bytes, &at) else { return false }
      skip()
      guard at < bytes.count, bytes[at] == 0x3D else { continue }
      at += 1
      skip()
      guard skipQuoted(bytes, &at, reading) || skipToken(bytes, &at) else { return false }
      skip()
    }
    return true
  }

  private static func skipSpace(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) {
    while at < bytes.count, bytes[at] == ASCII.space || bytes[at] == ASCII.tab { at += 1 }
  }

  private static func skipToken(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> Bool {
    let start = at
    while at < bytes.count, ASCII.isTokenByte(bytes[at]) { at += 1 }
    return at > start
  }

  /// Skips a quoted string; false if there is none, or if it contains an escape that the reading does not accept.
  private static func skipQuoted(
    _ bytes: UnsafeRawBufferPointer, _ at: inout Int, _ reading: Reading
  ) -> Bool {
    guard at < bytes.count, bytes[at] == 0x22 else { return false }
    at += 1
    while at < bytes.count, bytes[at] != 0x22 {
      if bytes[at] == 0x5C {
        guard reading == .tolerant else { return false }
        at += 1
      }
      at += 1
    }
    guard at < bytes.count else { return false }
    at += 1
    return true
  }
}
