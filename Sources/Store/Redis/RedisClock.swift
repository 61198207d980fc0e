import Idempotency

/// An estimate of the store's clock that is never ahead of it.
///
/// A reply has the time at which its script ran, before its receipt. From there on this machine's clock is counted, a
/// thousandth slow. After a long time without replies the estimate lags, and a claim is refused as late.
///
/// Redis' time is wall time. A reply bounds its difference to this machine's clock from both sides; one that
/// contradicts earlier bounds, by more than clocks drift apart, is a step.
struct RedisClock {
  private struct Bounds {
    var low: Int64
    var high: Int64
    var at: BootInstant
  }

  /// The smallest step that counts, in milliseconds: the margin of the shortest lease.
  private static let minStep: Int64 = 100

  private var bounds: Bounds?
  var difference: Int64 { bounds?.low ?? 0 }
  private var lastTime: StoreInstant?
  private var at = BootInstant(nanoseconds: 0)

  /// Takes the store's time from a reply. `sentAt` may be earlier than the writing of the command.
  ///
  /// - Returns: The step of the store's clock since earlier replies, also those of an earlier connection.
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

  /// Discards the estimate of an earlier connection.
  mutating func reset() { lastTime = nil }

  func estimate(at now: BootInstant) -> StoreInstant? {
    lastTime.map { $0 + Milliseconds((now - at).count * 999 / 1000) }
  }
}
