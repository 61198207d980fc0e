/// Eight bytes looked at in one step, which is what makes checking a value cheap.
///
/// The tricks are the usual ones of arithmetic within a register; each is exact, none guesses.
enum Word {
  private static let ones: UInt64 = 0x0101_0101_0101_0101
  private static let highs: UInt64 = 0x8080_8080_8080_8080

  /// The eight bytes at an offset, which need not be aligned.
  static func load(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  /// Each letter A to Z in lower case, every other byte as it is.
  static func lowercased(_ word: UInt64) -> UInt64 {
    let seven = word & ~highs
    let fromA = seven &+ (ones &* (0x80 - 0x41))
    let pastZ = seven &+ (ones &* (0x80 - 0x5B))
    return word | ((fromA & ~pastZ & ~word & highs) >> 2)
  }

  /// Whether one of the bytes is below 0x20 or is 0x7F.
  static func hasControl(_ word: UInt64) -> Bool {
    let below = (word &- ones &* 0x20) & ~word
    let delete = word ^ (ones &* 0x7F)
    return (below | ((delete &- ones) & ~delete)) & highs != 0
  }

  /// The position of the first of the eight bytes that is this one.
  static func first(_ byte: UInt8, in word: UInt64) -> Int? {
    let zero = UInt64(littleEndian: word) ^ (ones &* UInt64(byte))
    // Above the lowest mark a borrow may make false ones; the lowest is right.
    let marks = (zero &- ones) & ~zero & highs
    return marks == 0 ? nil : marks.trailingZeroBitCount / 8
  }
}
