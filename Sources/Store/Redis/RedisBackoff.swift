import Idempotency

/// How long to wait before connecting again: any span below a bound that doubles with each failure (full jitter), so
/// that many nodes do not come back at one moment.
struct RedisBackoff {
  /// A connection over loopback takes less than a millisecond, one to another zone a few.
  private static let first: Int64 = 20
  /// An operator who mends Redis should not wait for Semel.
  private static let greatest: Int64 = 2000

  private var bound = first

  /// - Parameter fraction: a random number from 0 up to 1.
  mutating func failed(fraction: Double) -> Milliseconds {
    let span = Milliseconds(1 + Int64(Double(bound - 1) * fraction))
    bound = min(bound * 2, Self.greatest)
    return span
  }

  mutating func succeeded() { bound = Self.first }
}
