/// The pace at which an owner repeats a write that the store did not take. A claim that would take its record over
/// waits for the last try.
public enum WritePace {
  /// The longest pause between two tries.
  public static let maxPause: Milliseconds = 2000
  /// The time for delays of the process and of the network.
  private static let slack: Milliseconds = 500
  /// The calls of the store in one try: a large response is written to Redis before its record.
  private static let calls: Int64 = 2

  /// The time after the store's return by which every owner has repeated its write.
  ///
  /// - Parameter callTime: The longest time of one call of the store.
  public static func span(callTime: Milliseconds) -> Milliseconds {
    maxPause + slack + Milliseconds(callTime.count * calls)
  }
}
