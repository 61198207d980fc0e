import Dispatch

/// The schedule of an operation that fails: it is tried again after a second, and after twice as long each time, up to
/// an hour.
struct RetryPause: Equatable {
  static let first: UInt64 = 1_000_000_000
  static let max: UInt64 = 3600 * first

  private var pause = Self.first
  private var notBefore: UInt64 = 0

  /// Whether the operation may be tried.
  ///
  /// - Parameter now: The time of a monotonic clock, in nanoseconds.
  func isDue(now: UInt64 = DispatchTime.now().uptimeNanoseconds) -> Bool { now >= notBefore }

  mutating func failed(now: UInt64 = DispatchTime.now().uptimeNanoseconds) {
    notBefore = now + pause
    pause = min(pause * 2, Self.max)
  }

  mutating func succeeded() { self = RetryPause() }
}
