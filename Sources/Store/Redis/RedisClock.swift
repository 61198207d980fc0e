import Idempotency

/// An estimate of the store's clock that is never ahead of it.
///
/// A reply contains the time at which its script ran, which is before its receipt. From there on, this machine's clock
/// is counted, a thousandth slow: clocks drift apart by less. One that is slewed faster, as chrony may, counts as set
/// once that matters. After a long time without replies the estimate lags, a claim is refused as late for that reason,
/// and its reply brings the time.
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

  /// The smallest step that counts: the margin of the shortest lease, in milliseconds.
  private static let minStep: Int64 = 100

  private var bounds: Bounds?
  /// The least difference between Redis' clock and this machine's by the last replies, in milliseconds.
  var difference: Int64 { bounds?.low ?? 0 }
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
    let new = Bounds(
      low: now.milliseconds - at.nanoseconds / 1_000_000 - 1,
      high: now.milliseconds - sentAt.nanoseconds / 1_000_000 + 1,
      at: at)
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
  mutating func reset() { lastTime = nil }

  /// Returns the estimate; `nil` before the first reply.
  func estimate(at now: BootInstant) -> StoreInstant? {
    lastTime.map { $0 + Milliseconds((now - at).count * 999 / 1000) }
  }
}
