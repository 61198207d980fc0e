import Idempotency

/// How often and how late a connect is tried again: doubling, capped, and drawn evenly from nothing to the whole.
struct ConnectBackoff {
  /// Long enough for a backend's accept queue to drain, short beside the connect time-out.
  private static let first: Int64 = 25
  private static let cap: Int64 = 500

  private let retries: Int
  private(set) var tried = 0

  init(retries: Int) { self.retries = retries }

  /// The delay before the next attempt, `nil` when there is none.
  mutating func next(using random: inout some RandomNumberGenerator) -> Milliseconds? {
    guard tried < retries else { return nil }
    let ceiling = min(Self.cap, Self.first << min(Int64(tried), 10))
    tried += 1
    return Milliseconds(Int64.random(in: 0...ceiling, using: &random))
  }
}
