import Idempotency
import Platform

/// The pauses before reconnecting, at random below a bound that doubles with each failure (full jitter).
struct RedisBackoff {
  /// The first bound, in milliseconds: a few times what a connection to another zone takes.
  private static let first: Int64 = 20
  /// The largest bound, for operators who have repaired Redis.
  static let maxPause: Milliseconds = 2000

  private var bounds = Backoff(first: first, max: maxPause.count)

  mutating func failed(fraction: Double) -> Milliseconds {
    Milliseconds(1 + Int64(Double(bounds.next() - 1) * fraction))
  }

  mutating func succeeded() { bounds.reset() }
}
