import Glibc

/// Comparison and classification of bytes as HTTP defines them (RFC 9110, section 5.6).
public enum ASCII {
  public static let carriageReturn: UInt8 = 0x0D
  public static let lineFeed: UInt8 = 0x0A
  /// CRLF, as the two bytes lie in memory.
  static let lineEnd = UInt16(0x0A0D).littleEndian
  public static let space: UInt8 = 0x20
  public static let tab: UInt8 = 0x09
  public static let colon: UInt8 = 0x3A
  public static let comma: UInt8 = 0x2C

  /// The byte in lower case if it is a letter A to Z, else the byte itself.
  public static func lowercased(_ byte: UInt8) -> UInt8 {
    byte &- 0x41 < 26 ? byte | 0x20 : byte
  }

  /// Whether `bytes` equals `lowercased`, which must be in lower case. The letter case of `bytes` is ignored.
  public static func equalsIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ lowercased: StaticString) -> Bool {
    let lowercased = UnsafeRawBufferPointer(start: lowercased.utf8Start, count: lowercased.utf8CodeUnitCount)
    return areEqual(bytes, lowercased) { Word.lowercased($0) == $1 }
  }

  /// Whether the two are equal, byte by byte.
  public static func equals(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    guard let start = left.baseAddress, let other = right.baseAddress else { return true }
    return memcmp(start, other, left.count) == 0
  }

  /// The index of the first such byte in a range; `nil` if there is none.
  public static func index(
    of byte: UInt8, in bytes: UnsafeRawBufferPointer, _ range: Range<Int>
  ) -> Int? {
    invariant(range.lowerBound >= 0 && range.upperBound <= bytes.count, "a range beyond the bytes")
    guard let start = bytes.baseAddress, !range.isEmpty,
      let found = memchr(start + range.lowerBound, Int32(byte), range.count)
    else { return nil }
    return UnsafeRawPointer(found) - start
  }

  /// Whether the two are equal, regardless of letter case.
  public static func equalsIgnoringCase(
    _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer
  ) -> Bool {
    areEqual(left, right) { $0 == $1 || Word.lowercased($0) == Word.lowercased($1) }
  }

  /// Whether the two are of one length, and equal word by word.
  @inline(__always)
  private static func areEqual(
    _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer, _ isEqual: (UInt64, UInt64) -> Bool
  ) -> Bool {
    let count = left.count
    guard count == right.count else { return false }
    guard count >= 8 else { return isEqual(Word.short(left), Word.short(right)) }
    var offset = 0
    while offset < count - 8 {
      guard isEqual(Word.load(left, offset), Word.load(right, offset)) else { return false }
      offset += 8
    }
    return isEqual(Word.load(left, count - 8), Word.load(right, count - 8))
  }

  /// Whether the byte is allowed in a token, such as a method or a field name (RFC 9110, section 5.6.2).
  public static func isTokenByte(_ byte: UInt8) -> Bool {
    byte < 128 && (byte < 64 ? tokenLow : tokenHigh) & (1 << UInt64(byte & 63)) != 0
  }

  /// One bit for each of `!#$%&'*+-.0123456789`.
  private static let tokenLow: UInt64 = 0x03FF_6CFA_0000_0000
  /// One bit for each letter and each of ``^_`|~``, counted from 64.
  private static let tokenHigh: UInt64 = 0x57FF_FFFF_C7FF_FFFE

  /// Whether the byte is a digit 0 to 9.
  public static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

  /// Whether the byte is a letter A to Z in either case.
  public static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

  public static func isLetterOrDigit(_ byte: UInt8) -> Bool { isLetter(byte) || isDigit(byte) }

  /// Whether the byte is a letter, a digit or one of `-._~` (RFC 3986, section 2.3).
  public static func isUnreserved(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F || byte == 0x7E
  }

  /// The value of a hexadecimal digit in either case; `nil` for other bytes.
  public static func hexValue(_ byte: UInt8) -> UInt8? {
    if isDigit(byte) { return byte - 0x30 }
    let letter = (byte | 0x20) &- 0x61
    return letter < 6 ? letter + 10 : nil
  }

  /// The upper-case hexadecimal digit of a value below 16.
  public static func hexDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? 0x30 + value : 0x37 + value
  }

  /// The number in plain decimal digits, at least one; `nil` if there is a sign, a space or an overflow.
  public static func decimal(_ bytes: UnsafeRawBufferPointer) -> Int? {
    guard !bytes.isEmpty else { return nil }
    var number = 0
    for byte in bytes {
      guard isDigit(byte) else { return nil }
      let (tens, overflowed) = number.multipliedReportingOverflow(by: 10)
      let (sum, passed) = tens.addingReportingOverflow(Int(byte - 0x30))
      guard !overflowed, !passed else { return nil }
      number = sum
    }
    return number
  }
}

extension ASCII {
  /// The length of the largest number in decimal digits.
  public static var maxDecimalLength: Int { 19 }

  /// Writes a non-negative number in decimal digits to memory that has room for them, and returns their number.
  public static func writeDecimal(_ number: Int, to place: UnsafeMutableRawPointer) -> Int {
    var digits = 1
    var rest = number / 10
    while rest > 0 {
      digits += 1
      rest /= 10
    }
    rest = number
    for index in (0..<digits).reversed() {
      place.storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: rest % 10), toByteOffset: index, as: UInt8.self)
      rest /= 10
    }
    return digits
  }

  /// Writes a number from 0 to 99 in two decimal digits.
  public static func writeTwoDigits(_ number: Int, to place: UnsafeMutableRawPointer) {
    place.storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: number / 10), as: UInt8.self)
    place.storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: number % 10), toByteOffset: 1, as: UInt8.self)
  }

  /// The hexadecimal digit, in lower case, of a value below 16.
  public static func lowercaseHexDigit(_ value: UInt8) -> UInt8 { hexDigit(value) | 0x20 }

  /// The eight hexadecimal digits, in lower case, of a value. The first digit is the highest byte.
  fileprivate static func lowercaseHexDigits(_ value: UInt32) -> UInt64 {
    // Each half byte gets a byte of its own.
    var digits = UInt64(value)
    digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
    digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
    digits = (digits | digits << 4) & 0x0F0F_0F0F_0F0F_0F0F
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return digits + 0x3030_3030_3030_3030 + letters * UInt64(UInt8(ascii: "a") - 0x3A)
  }
}

extension FixedWidthInteger where Self: UnsignedInteger {
  /// The hexadecimal digits in lower case, two for each byte.
  public var hexText: String {
    String(unsafeUninitializedCapacity: Self.bitWidth / 4) { text in
      guard let start = text.baseAddress else { return 0 }
      writeHex(to: start)
      return Self.bitWidth / 4
    }
  }

  /// Writes the hexadecimal digits in lower case, two for each byte, to memory that has room for them.
  @inline(__always)
  public func writeHex(to memory: UnsafeMutableRawPointer) {
    var (rest, left) = (self, Self.bitWidth / 4)
    while left >= 8 {
      left -= 8
      let digits = ASCII.lowercaseHexDigits(UInt32(truncatingIfNeeded: rest))
      (memory + left).storeBytes(of: digits.bigEndian, as: UInt64.self)
      rest >>= 32
    }
    while left > 0 {
      left -= 1
      let digit = ASCII.lowercaseHexDigit(UInt8(truncatingIfNeeded: rest) & 0xF)
      (memory + left).storeBytes(of: digit, as: UInt8.self)
      rest >>= 4
    }
  }
}

/// Operations on eight bytes in one step, which make the check of a field value cheap.
///
/// They use the usual arithmetic within a register, and each is exact.
enum Word {
  private static let ones: UInt64 = 0x0101_0101_0101_0101
  private static let highs: UInt64 = 0x8080_8080_8080_8080

  /// The eight bytes at an offset, which may be unaligned.
  static func load(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  /// All of fewer than eight bytes, some of them twice: equal for equal bytes of one length.
  static func short(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    let count = bytes.count
    if count >= 4 {
      let first = bytes.loadUnaligned(as: UInt32.self)
      return UInt64(first) << 32 | UInt64(bytes.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self))
    }
    guard count > 0 else { return 0 }
    return UInt64(bytes[0]) << 16 | UInt64(bytes[count / 2]) << 8 | UInt64(bytes[count - 1])
  }

  /// The word with each letter A to Z in lower case and every other byte unchanged.
  static func lowercased(_ word: UInt64) -> UInt64 {
    let seven = word & ~highs
    let fromA = seven &+ (ones &* (0x80 - 0x41))
    let pastZ = seven &+ (ones &* (0x80 - 0x5B))
    return word | ((fromA & ~pastZ & ~word & highs) >> 2)
  }

  /// Whether all bytes are below 0x80.
  static func isASCII(_ word: UInt64) -> Bool { word & highs == 0 }

  /// Whether any byte is below 0x20 or is 0x7F.
  static func hasControl(_ word: UInt64) -> Bool {
    let below = (word &- ones &* 0x20) & ~word
    let delete = word ^ (ones &* 0x7F)
    return (below | ((delete &- ones) & ~delete)) & highs != 0
  }

  /// The position of the first of the eight bytes that equals `byte`; `nil` if none does.
  static func first(_ byte: UInt8, in word: UInt64) -> Int? {
    let zero = UInt64(littleEndian: word) ^ (ones &* UInt64(byte))
    // A borrow may set false marks above the lowest mark; the lowest is right.
    let marks = (zero &- ones) & ~zero & highs
    return marks == 0 ? nil : marks.trailingZeroBitCount / 8
  }
}
