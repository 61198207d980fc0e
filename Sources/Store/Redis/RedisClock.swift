import Idempotency

/// An estimate of the store's clock that is never ahead of it.
///
/// A reply contains the time at which its script ran, which is before its receipt. From there on, this machine's clock
/// is counted, a thousandth slow: clocks drift apart by less, and NTP adjusts none faster than half of that. After a
/// long time without replies the estimate lags, a claim is refused as late for that reason, and its reply brings the
/// time.
struct RedisClock {
  private var lastTime: StoreInstant?
  private var at = BootInstant(nanoseconds: 0)

  /// Takes the store's time from a reply that was received at `at`.
  mutating func update(to now: StoreInstant, at: BootInstant) {
    lastTime = now
    self.at = at
  }

  /// Discards the time of an earlier connection, which may have led to another machine.
  mutating func reset() { lastTime = nil }

  /// Returns the estimate; `nil` before the first reply.
  func estimate(at now: BootInstant) -> StoreInstant? {
    lastTime.map { $0 + Milliseconds((now - at).count * 999 / 1000) }
  }
}
