import Glibc

/// Random numbers of the system, fetched for many at a time: one system call for each would cost more than what needs
/// it. Two clones of a running machine return the same ones until each has used up what it had fetched.
public struct Entropy {
  /// The time for which `fresh` uses what was fetched, in nanoseconds: a millisecond, far less than a clone takes.
  private static let freshness: Int64 = 1_000_000

  private var words: [UInt64]
  /// The number of words that were not returned yet.
  private var left = 0
  /// The time of the last fetch for `fresh`.
  private var fetchedAt = Int64.min / 2

  /// - Parameter count: The number of words that are fetched at a time, from 2 to 32.
  public init(count: Int = 32) { words = Array(repeating: 0, count: count) }

  /// Returns a random number that was never returned before.
  public mutating func next() -> UInt64 {
    if left == 0 { refill() }
    left -= 1
    return words[left]
  }

  /// Returns two random numbers that the system has made within the last millisecond: two clones of a running machine
  /// return the same ones no longer than that.
  ///
  /// - Parameter now: By a clock that is never set, in nanoseconds.
  public mutating func fresh(now: Int64) -> (UInt64, UInt64) {
    if left < 2 || now - fetchedAt > Self.freshness {
      refill()
      fetchedAt = now
    }
    return (next(), next())
  }

  private mutating func refill() {
    words.withUnsafeMutableBytes { bytes in
      let failed = getentropy(bytes.baseAddress, bytes.count)
      precondition(failed == 0, "Entropy: the system gives no random numbers (errno \(errno))")
    }
    left = words.count
  }
}
