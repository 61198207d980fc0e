import Idempotency

/// An estimate of the store's clock that is never ahead of it.
///
/// A reply tells the time at which its script ran, which is before its receipt. From there on this machine's clock
/// is counted, a thousandth slow: clocks drift apart by less, and NTP turns none faster than half of that. After a
/// long silence the estimate is late, a claim is refused for that, and its reply brings the time.
struct RedisClock {
  private var told: StoreInstant?
  private var at = BootInstant(nanoseconds: 0)

  /// The store's time came with a reply that was received at `at`.
  mutating func told(_ now: StoreInstant, at: BootInstant) {
    told = now
    self.at = at
  }

  /// Forgets what another connection told: its end may be another machine.
  mutating func reset() { told = nil }

  /// `nil` before the first reply.
  func estimate(at now: BootInstant) -> StoreInstant? {
    told.map { $0 + Milliseconds((now - at).count * 999 / 1000) }
  }
}
