import Idempotency
import Platform

/// The rate below which a client does not move its body. One that moves a byte now and then would keep a connection to
/// the backend for as long as it likes.
enum LeastRate {
  /// Bytes per second of a time-out: less than a tenth of what the slowest mobile lines carry.
  private static let bytesPerSecond: Int64 = 512

  /// The number of bytes that extend a time-out, by their arrival or departure.
  static func bytes(in span: Milliseconds) -> Int {
    Int(max(1, min(span.count, 1 << 40) * bytesPerSecond / 1000))
  }
}

/// The pace of an upload, by the time for which its consumer has waited for it.
struct UploadPace {
  /// The time of waiting since the last bytes that extended the time-out, in milliseconds.
  private var waited: Int64 = 0
  /// The number of bytes of the body by then.
  private var counted = 0

  /// Returns the time left for more of the body, in milliseconds.
  ///
  /// - Parameter bytes: The number of bytes of the body that have arrived.
  mutating func left(of span: Milliseconds, after bytes: Int) -> Int64 {
    if bytes - counted >= LeastRate.bytes(in: span) {
      counted = bytes
      waited = 0
    }
    return max(0, span.count - waited)
  }

  /// Counts the time of a wait. One that ended so late that the process stood still says nothing about the client.
  ///
  /// - Parameter left: The time for which it was to last at most, in milliseconds.
  mutating func didWait(_ span: Milliseconds, of left: Int64) {
    if span.count - left <= Lateness.tolerance { waited += span.count }
  }
}
