/// The random name of one owner of a record. The holder of the token may complete, release and renew the record.
public struct OwnerToken: Hashable, Sendable {
  public var high: UInt64
  public var low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The first half of the tokens that an operator's resolution leaves, which mark a record as ended by an operator. A
  /// random token has it with a probability of 1 in 2^64.
  private static let operators: UInt64 = 0x6F70_6572_6174_6F72

  /// A new token for an operator's resolution.
  public static func ofOperator() -> OwnerToken {
    OwnerToken(high: operators, low: random().low)
  }

  /// Whether the token comes from an operator's resolution.
  public var isOfOperator: Bool { high == Self.operators }

  /// A new token from the system's random number generator.
  public static func random() -> OwnerToken {
    var generator = SystemRandomNumberGenerator()
    return OwnerToken(high: generator.next(), low: generator.next())
  }
}
