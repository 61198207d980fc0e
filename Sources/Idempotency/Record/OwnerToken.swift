/// The random name of one owner of a record: who holds it may complete, release and renew.
public struct OwnerToken: Hashable, Sendable {
  public var high: UInt64
  public var low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A new token from the system's generator of random numbers.
  public static func random() -> OwnerToken {
    var generator = SystemRandomNumberGenerator()
    return OwnerToken(high: generator.next(), low: generator.next())
  }
}
