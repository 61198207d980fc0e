import Idempotency

/// The delays between attempts to connect: the upper bound doubles up to a cap, and each delay is drawn evenly from
/// zero to the bound.
struct ConnectBackoff {
  /// The first bound, in milliseconds: long enough for a backend's accept queue to drain, and short compared with the
  /// connect time-out.
  private static let first: Int64 = 25
  private static let cap = UpstreamSettings.maxConnectPause.count

  private let retries: Int
  private(set) var tried = 0

  init(retries: Int) { self.retries = retries }

  /// Returns the delay before the next attempt; `nil` if the attempts are exhausted.
  mutating func next(using random: inout some RandomNumberGenerator) -> Milliseconds? {
    guard tried < retries else { return nil }
    let ceiling = min(Self.cap, Self.first << min(Int64(tried), 10))
    tried += 1
    return Milliseconds(Int64.random(in: 0...ceiling, using: &random))
  }
}
