import Idempotency
import Platform

/// The delays between attempts to connect: the upper bound doubles up to a cap, and each delay is drawn evenly from
/// zero to the bound.
struct ConnectBackoff {
  /// The first bound, in milliseconds: long enough for a backend's accept queue to drain, and short compared with the
  /// connect time-out.
  private static let first: Int64 = 25
  private static let cap = UpstreamSettings.maxConnectPause.count

  private let retries: Int
  private var tried = 0
  private var bounds = Backoff(first: first, max: cap)

  init(retries: Int) { self.retries = retries }

  /// Returns the delay before the next attempt; `nil` if the attempts are exhausted.
  mutating func next(using random: inout some RandomNumberGenerator) -> Milliseconds? {
    guard tried < retries else { return nil }
    tried += 1
    return Milliseconds(Int64.random(in: 0...bounds.next(), using: &random))
  }
}
