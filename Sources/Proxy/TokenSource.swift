import Idempotency

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Owner tokens from the system's random numbers, fetched for many at a time: one system call for each would cost
/// more than the rest of a claim's preparation.
struct TokenSource {
  /// What `getentropy` gives at most in one call.
  private static let blockSize = 256

  private var words: [UInt64] = []

  mutating func next() -> OwnerToken {
    if words.count < 2 { refill() }
    return OwnerToken(high: words.removeLast(), low: words.removeLast())
  }

  private mutating func refill() {
    words = Array(repeating: 0, count: Self.blockSize / 8)
    let failed = words.withUnsafeMutableBytes { getentropy($0.baseAddress, $0.count) }
    precondition(failed == 0, "TokenSource: the system gives no random numbers (errno \(errno))")
  }
}
