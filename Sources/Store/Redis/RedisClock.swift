import Idempotency

/// An estimate of the store's clock that is never ahead of it.
///
/// A reply contains the time at which its script ran, which is before its receipt. From there on, this machine's clock
/// is counted, a thousandth slow: clocks drift apart by less. One that is slewed faster, as chrony may, counts as set
/// once that matters. After a long time without replies the estimate lags, a claim is refused as late for that reason,
/// and its reply brings the time. `latest` is an estimate from the other side.
///
/// Redis' time is wall time, which may be set. A reply bounds its difference to this machine's clock from both sides; a
/// reply that contradicts the bounds of earlier ones, by more than clocks drift apart, is a step.
struct RedisClock {
  /// The bounds of the difference between Redis' clock and this machine's, in milliseconds.
  private struct Bounds {
    var low: Int64
    var high: Int64
    var at: BootInstant
  }

  /// The distance of the bounds above which `latest` is `nil`, in milliseconds.
  static let maxWidth: Int64 = 100
  /// The smallest step that counts: the margin of the shortest lease, in milliseconds.
  private static let minStep: Int64 = 100

  private var bounds: Bounds?
  /// The least difference between Redis' clock and this machine's by the last replies, in milliseconds.
  var difference: Int64 { bounds?.low ?? 0 }
  private var lastTime: StoreInstant?
  /// The sending of the command whose reply has last brought the time; `nil` before the first reply of this connection
  /// after a short wait.
  private var timeRequestedAt: BootInstant?
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
    let new = Bounds(
      low: now.milliseconds - at.nanoseconds / 1_000_000 - 1,
      high: now.milliseconds - sentAt.nanoseconds / 1_000_000 + 1,
      at: at)
    if new.high - new.low <= Self.maxWidth || timeRequestedAt != nil { timeRequestedAt = sentAt }
    guard let old = bounds else {
      bounds = new
      return nil
    }
    let drift = (at - old.at).count / 1000 + 1
    let (low, high) = (old.low - drift, old.high + drift)
    if new.low > high + Self.minStep || new.high < low - Self.minStep {
      bounds = new
      return Milliseconds(new.low > high ? new.low - high : new.high - low)
    }
    bounds = Bounds(
      low: new.high < low ? new.low : max(low, new.low),
      high: new.low > high ? new.high : min(high, new.high), at: at)
    return nil
  }

  /// Discards the estimate of an earlier connection, which may have led to another machine.
  mutating func reset() { (lastTime, timeRequestedAt) = (nil, nil) }

  /// Returns the estimate; `nil` before the first reply.
  func estimate(at now: BootInstant) -> StoreInstant? {
    lastTime.map { $0 + Milliseconds((now - at).count * 999 / 1000) }
  }

  /// Returns an estimate that is behind the store's clock by no more than a step that does not count, unless the clock
  /// was set since the last reply; `nil` if the time is not known well enough, or was requested longer ago than
  /// `maxAge`.
  func latest(at now: BootInstant, maxAge: Milliseconds) -> StoreInstant? {
    guard let timeRequestedAt, now - timeRequestedAt < maxAge, let bounds,
      bounds.high - bounds.low <= Self.maxWidth
    else { return nil }
    return StoreInstant(
      milliseconds: now.nanoseconds / 1_000_000 + bounds.high + (now - bounds.at).count / 1000 + 1)
  }
}
