import Idempotency
import Platform

/// The pauses before reconnecting: a random time below a bound that doubles with each failure (full jitter), so that
/// many nodes do not reconnect at the same moment.
struct RedisBackoff {
  /// The first bound, in milliseconds. A connection over loopback takes less than a millisecond, and one to another
  /// zone takes a few.
  private static let first: Int64 = 20
  /// The largest bound. An operator who has repaired Redis should not have to wait for Semel.
  static let maxPause: Milliseconds = 2000

  private var bounds = Backoff(first: first, max: maxPause.count)

  /// Returns the next pause, and doubles the bound.
  ///
  /// - Parameter fraction: A random number from 0 up to, not including, 1.
  mutating func failed(fraction: Double) -> Milliseconds {
    Milliseconds(1 + Int64(Double(bounds.next() - 1) * fraction))
  }

  /// Resets the bound, since a connection was made.
  mutating func succeeded() { bounds.reset() }
}
