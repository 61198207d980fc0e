/// The random name of one owner of a record: who holds it may complete, release and renew.
public struct OwnerToken: Hashable, Sendable {
  public var high: UInt64
  public var low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// How the tokens begin that a resolution leaves, by which a record says that an operator ended it. A random token
  /// begins so once in 2^64.
  private static let operators: UInt64 = 0x6F70_6572_6174_6F72

  /// A new token of an operator's resolution.
  public static func ofOperator() -> OwnerToken {
    OwnerToken(high: operators, low: random().low)
  }

  /// Whether a resolution left it.
  public var isOfOperator: Bool { high == Self.operators }

  /// A new token from the system's generator of random numbers.
  public static func random() -> OwnerToken {
    var generator = SystemRandomNumberGenerator()
    return OwnerToken(high: generator.next(), low: generator.next())
  }
}
