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
