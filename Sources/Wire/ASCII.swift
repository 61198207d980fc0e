/// Comparisons and classes of bytes as HTTP defines them (RFC 9110, section 5.6).
package enum ASCII {
  package static let carriageReturn: UInt8 = 0x0D
  package static let lineFeed: UInt8 = 0x0A
  package static let space: UInt8 = 0x20
  package static let tab: UInt8 = 0x09
  package static let colon: UInt8 = 0x3A
  package static let comma: UInt8 = 0x2C

  /// The byte in lower case where it is a letter A to Z.
  package static func lowercased(_ byte: UInt8) -> UInt8 {
    byte &- 0x41 < 26 ? byte | 0x20 : byte
  }

  /// Whether `bytes` reads as `lowercased`, which is in lower case, in any letter case.
  package static func equalsIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ lowercased: StaticString) -> Bool {
    guard bytes.count == lowercased.utf8CodeUnitCount else { return false }
    let other = lowercased.utf8Start
    for index in 0..<bytes.count where ASCII.lowercased(bytes[index]) != other[index] {
      return false
    }
    return true
  }

  /// Whether the two are the same in any letter case.
  package static func equalsIgnoringCase(
    _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer
  ) -> Bool {
    guard left.count == right.count else { return false }
    for index in 0..<left.count where lowercased(left[index]) != lowercased(right[index]) {
      return false
    }
    return true
  }

  /// Whether the byte may stand in a token: a method or a field name (RFC 9110, section 5.6.2).
  package static func isTokenByte(_ byte: UInt8) -> Bool {
    byte < 128 && (byte < 64 ? tokenLow : tokenHigh) & (1 << UInt64(byte & 63)) != 0
  }

  private static let tokenLow: UInt64 = mask("!#$%&'*+-.0123456789", from: 0)
  private static let tokenHigh: UInt64 = mask(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~", from: 64)

  private static func mask(_ bytes: String, from base: UInt8) -> UInt64 {
    bytes.utf8.reduce(0) { $0 | 1 << UInt64($1 - base) }
  }
}
