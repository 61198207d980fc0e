import Idempotency

extension IdempotencyKey {
  /// The information below which a key is weak, in bits: of so many keys of a caller in a day, two are equal by accident.
  private static let minBits = 40
  /// The length from which on no key of clients is weak that has as many distinct bytes as `enough`.
  private static let (long, enough) = (32, 3)

  /// Whether the key is easily guessed, or made twice by accident: it is short, or repeats few characters.
  ///
  /// The estimate is an upper bound: its length times the logarithm of the number of its distinct bytes. A random UUID
  /// has 130 bits by it, `order-1234` has 33, and the time in seconds 30. Takes some 30 ns.
  var isWeak: Bool {
    var seen: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    for byte in bytes.prefix(Self.long) {
      let bit = UInt64(1) << UInt64(byte & 63)
      switch byte >> 6 {
      case 0: seen.0 |= bit
      case 1: seen.1 |= bit
      case 2: seen.2 |= bit
      default: seen.3 |= bit
      }
    }
    let distinct =
      seen.0.nonzeroBitCount + seen.1.nonzeroBitCount + seen.2.nonzeroBitCount + seen.3.nonzeroBitCount
    guard bytes.count < Self.long else { return distinct < Self.enough }
    return bytes.count * Self.tenthsOfBits[min(distinct, Self.long)] < Self.minBits * 10
  }

  /// Ten times the binary logarithm of a number, by the number.
  private static let tenthsOfBits = [
    0, 0, 10, 16, 20, 23, 26, 28, 30, 32, 33, 35, 36, 37, 38, 39, 40, 41, 42, 42, 43, 44, 45, 45, 46, 46, 47,
    48, 48,
    49, 49, 50, 50,
  ]
}
