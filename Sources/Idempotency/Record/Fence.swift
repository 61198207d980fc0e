/// The mark of a forgotten record, which later owners of the record preserve.
public struct Fence: Sendable, Equatable {
  /// The end of the fence. Until then, no owner from before it may make the record anew.
  public var until: StoreInstant
  /// The time from the claim to that end, for a store whose entries expire by themselves.
  public var left: Milliseconds

  public init(until: StoreInstant, left: Milliseconds) {
    self.until = until
    self.left = left
  }

  /// Creates a fence; `nil` if its time is over.
  public init?(until: StoreInstant?, now: StoreInstant) {
    guard let until, now < until else { return nil }
    self.init(until: until, left: until - now)
  }

  /// The maximum time for which an owner tries to store the result of its exchange.
  public static let storing = Milliseconds.seconds(24 * 3600)

  /// The span of a fence that outlasts every owner: its exchange and `storing`, then the exchange once more and a day,
  /// in reserve for limits that a reload has shortened and for commands that arrive late.
  ///
  /// - Parameter exchange: The maximum time of an exchange, from its claim on.
  public static func span(outlasting exchange: Milliseconds) -> Milliseconds {
    storing + exchange + exchange + .seconds(24 * 3600)
  }
}
