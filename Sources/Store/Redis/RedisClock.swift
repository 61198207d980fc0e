import Idempotency

/// An estimate of the store's clock that is never ahead of it.
///
/// A reply contains the time at which its script ran, which is before its receipt. From there on, this machine's clock
/// is counted, a thousandth slow: clocks drift apart by less, and NTP adjusts none faster than half of that. After a
/// long time without replies the estimate lags, a claim is refused as late for that reason, and its reply brings the
/// time. `latest` is an estimate from the other side.
///
/// Redis' time is wall time, which may be set. A reply bounds its difference to this machine's clock from both sides; a
/// reply that contradicts the bounds of earlier ones, by more than clocks drift apart, is a step.
struct RedisClock {
  /// The bounds of the difference between Redis' clock and this machine's, in milliseconds.
  private struct Difference {
    var low: Int64
    var high: Int64
    var at: BootInstant
  }

  /// The distance of the bounds from which it gives none, in milliseconds.
  private static let maxWidth: Int64 = 100
  /// The smallest step that counts. The margin of the shortest lease is half a second.
  private static let minStep: Int64 = 100

  private var difference: Difference?
  private var lastTime: StoreInstant?
  private var at = BootInstant(nanoseconds: 0)

  /// Takes the store's time from a reply.
  ///
  /// - Parameters:
  ///   - sentAt: The time at which the command was written, or earlier.
  ///   - at: The time at which the reply was received.
  /// - Returns: The step of the store's clock since earlier replies, also those of an earlier connection; `nil` if
  ///   there was none.
  mutating func update(to now: StoreInstant, sentAt: BootInstant, at: BootInstant) -> Milliseconds? {
    lastTime = now
    self.at = at
    let new = Difference(
      low: now.milliseconds - at.nanoseconds / 1_000_000 - 1,
      high: now.milliseconds - sentAt.nanoseconds / 1_000_000 + 1,
      at: at)
    guard let old = difference else {
      difference = new
      return nil
    }
    let drift = (at - old.at).count / 1000 + 1
    let (low, high) = (old.low - drift, old.high + drift)
    if new.low > high + Self.minStep || new.high < low - Self.minStep {
      difference = new
      return Milliseconds(new.low > high ? new.low - high : new.high - low)
    }
    difference = Difference(
      low: min(max(low, new.low), new.high), high: max(min(high, new.high), new.low), at: at)
    return nil
  }

  /// Discards the estimate of an earlier connection, which may have led to another machine.
  mutating func reset() { lastTime = nil }

  /// Returns the estimate; `nil` before the first reply.
  func estimate(at now: BootInstant) -> StoreInstant? {
    lastTime.map { $0 + Milliseconds((now - at).count * 999 / 1000) }
  }

  /// Returns an estimate that is never behind the store's clock, unless that was set since the last reply, and hardly
  /// ahead of it; `nil` if it is not known well enough, or the last reply has this age.
  func latest(at now: BootInstant, maxAge: Milliseconds) -> StoreInstant? {
    guard lastTime != nil, let difference, difference.high - difference.low <= Self.maxWidth
    else { return nil }
    let age = now - difference.at
    guard age < maxAge else { return nil }
    return StoreInstant(
      milliseconds: now.nanoseconds / 1_000_000 + difference.high + age.count / 1000 + 1)
  }
}
