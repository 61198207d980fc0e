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
}
