/// A rate of new keys: so many in a period, all at once or one by one.
public struct KeyRate: Hashable, Sendable {
  public let count: Int
  public let period: Milliseconds

  public init(count: Int, period: Milliseconds) {
    self.count = count
    self.period = period
  }

  /// Takes one key out of a quota that fills evenly (the generic cell rate algorithm, ITU-T I.371).
  ///
  /// - Parameters:
  ///   - fullAt: The time at which the quota is full again; 0 at first.
  ///   - now: The time by the same clock, in nanoseconds.
  /// - Returns: The time at which it is full afterwards, and the wait until the next key if there is none now.
  public func take(fullAt: Int64, now: Int64) -> (fullAt: Int64, wait: Milliseconds?) {
    let whole = period.count * 1_000_000
    let each = whole / Int64(count)
    let next = max(fullAt, now) + each
    guard next - now > whole else { return (next, nil) }
    return (fullAt, Milliseconds((next - now - whole + 999_999) / 1_000_000))
  }
}
