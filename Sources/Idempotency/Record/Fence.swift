/// The mark of a forgotten record, as the owner that came after it carries it.
public struct Fence: Sendable, Equatable {
  /// The end of it: until then no owner from before it may make the record anew.
  public var until: StoreInstant
  /// The span from the claim on to that end, for a store whose entries leave by themselves.
  public var left: Milliseconds

  public init(until: StoreInstant, left: Milliseconds) {
    self.until = until
    self.left = left
  }

  /// The fence that is still up; `nil` for one whose time is over.
  public init?(until: StoreInstant?, now: StoreInstant) {
    guard let until, now < until else { return nil }
    self.init(until: until, left: until - now)
  }

  /// The longest time for which an owner tries to store what its exchange has come to.
  public static let storing = Milliseconds.seconds(24 * 3600)

  /// The span of a fence that outlasts every owner: its exchange, then `storing`, and a day to spare for what a reload
  /// has shortened and for commands that come late.
  /// - Parameter exchange: the longest that an exchange may take, from its claim on.
  public static func span(outlasting exchange: Milliseconds) -> Milliseconds {
    storing + exchange + exchange + .seconds(24 * 3600)
  }
}
