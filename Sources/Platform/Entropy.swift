import Glibc

/// Random numbers of the system, fetched for many at a time: one system call for each would cost more than the rest of
/// a claim's preparation.
public struct Entropy {
  /// The maximum number of bytes that `getentropy` returns in one call.
  private static let blockSize = 256

  private var words: [UInt64] = []

  public init() {}

  /// Returns a random number that was never returned before.
  public mutating func next() -> UInt64 {
    if words.isEmpty { refill() }
    return words.removeLast()
  }

  private mutating func refill() {
    words = Array(repeating: 0, count: Self.blockSize / 8)
    let failed = words.withUnsafeMutableBytes { getentropy($0.baseAddress, $0.count) }
    precondition(failed == 0, "Entropy: the system gives no random numbers (errno \(errno))")
  }
}
