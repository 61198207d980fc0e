/// The wall clock of one server, which drifts from the world's time and can be set.
package struct SimRedisClock: Sendable {
  /// The time since 1970 at the world's time 0, in microseconds.
  private var offset: Int64
  /// The gain on the world's time, in millionths.
  private var drift: Int64
  /// The world's time since which the drift counts, in nanoseconds.
  private var base: Int64 = 0

  /// Creates a clock.
  ///
  /// - Parameters:
  ///   - microseconds: The time since 1970 at the world's time 0.
  ///   - drift: The gain on the world's time, in millionths.
  package init(microseconds: Int64, drift: Int64 = 0) {
    offset = microseconds
    self.drift = drift
  }

  /// The clock's time, in microseconds since 1970.
  ///
  /// - Parameter now: The world's time, in nanoseconds.
  package func microseconds(at now: Int64) -> Int64 {
    offset + now / 1000 + (now - base) / 1000 * drift / 1_000_000
  }

  package func milliseconds(at now: Int64) -> Int64 { microseconds(at: now) / 1000 }

  /// Sets the clock by a difference, in microseconds.
  package mutating func step(by difference: Int64) { offset += difference }

  /// Changes the gain on the world's time from now on.
  package mutating func drift(by millionths: Int64, from now: Int64) {
    offset = microseconds(at: now) - now / 1000
    (drift, base) = (millionths, now)
  }

  /// The world's time at which the clock shows a time, if it is not set before; a time that has passed yields `now`.
  func reach(_ milliseconds: Int64, from now: Int64) -> Int64 {
    let left = milliseconds * 1000 - microseconds(at: now)
    guard left > 0 else { return now }
    // Rounded up, so that the time is reached then.
    return now + left * 1000 * 1_000_000 / (1_000_000 + drift) + 1000
  }
}
