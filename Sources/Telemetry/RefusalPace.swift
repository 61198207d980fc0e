/// The pace of entries about refused requests without a known caller: a hundred of each reason a second. Pure.
struct RefusalPace {
  /// The fate of an entry.
  enum Verdict: Equatable {
    case write
    /// After the first one, the number of those left out is due within a second.
    case leaveOut(isFirst: Bool)
  }

  static let maxPerSecond = 100
  private static let second: UInt64 = 1_000_000_000

  private struct Window {
    var endsAt: UInt64
    var written = 0
    var leftOut = 0
  }

  private var windows: [RefusalReason: Window] = [:]

  /// Counts an entry, at a time of a monotonic clock, in nanoseconds.
  mutating func count(_ reason: RefusalReason, now: UInt64) -> Verdict {
    var window = windows[reason] ?? Window(endsAt: now &+ Self.second)
    defer { windows[reason] = window }
    if now >= window.endsAt { (window.endsAt, window.written) = (now &+ Self.second, 0) }
    guard window.written == Self.maxPerSecond else {
      window.written += 1
      return .write
    }
    let isFirst = windows.values.allSatisfy { $0.leftOut == 0 }
    window.leftOut += 1
    return .leaveOut(isFirst: isFirst)
  }

  /// Returns the entries that were left out since the last call, by their reasons.
  mutating func takeLeftOut() -> [(reason: RefusalReason, count: Int)] {
    let due = windows.filter { $0.value.leftOut > 0 }.map { (reason: $0.key, count: $0.value.leftOut) }
    for reason in due.map(\.reason) { windows[reason]?.leftOut = 0 }
    return due.sorted { $0.reason.rawValue < $1.reason.rawValue }
  }
}
