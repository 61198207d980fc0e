import Platform

/// The times at which a key set is fetched, in milliseconds of a clock that never runs backwards. Pure.
struct KeyRefresh {
  /// The time between two fetches, so that a key that its issuer has withdrawn is not accepted for longer.
  static let period: Int64 = 10 * 60_000
  /// The minimum time between two fetches because of unknown keys, whose names anybody may invent.
  static let unknownKeyPause: Int64 = 60_000
  /// The time before the first repetition of a failed fetch, and the last.
  static let firstPause: Int64 = 1000
  static let maxPause: Int64 = 60_000

  private(set) var isFetching = false
  /// The number of fetches in a row that have failed.
  private(set) var failures = 0
  private var pauses = Backoff(first: firstPause, max: maxPause)
  private var dueAt: Int64 = 0
  private var unknownKeyAt: Int64?

  mutating func begins(at now: Int64, hasChanged: Bool) -> Bool {
    guard !isFetching, hasChanged || now >= dueAt else { return false }
    isFetching = true
    return true
  }

  enum UnknownKeyAction { case fetch, awaitFetch, giveUp }

  mutating func keyUnknown(at now: Int64) -> UnknownKeyAction {
    guard !isFetching else { return .awaitFetch }
    if let last = unknownKeyAt, now - last < Self.unknownKeyPause { return .giveUp }
    unknownKeyAt = now
    isFetching = true
    return .fetch
  }

  mutating func ended(isSuccess: Bool, at now: Int64) {
    isFetching = false
    if isSuccess {
      failures = 0
      pauses.reset()
      dueAt = now + Self.period
    } else {
      failures += 1
      dueAt = now + pauses.next()
    }
  }
}
