import NIOCore

/// The pace of log entries about events that may come often: one entry a minute for each key, with the number of events
/// since the last one.
public struct LogPace<Key: Hashable & Sendable>: Sendable {
  private struct Entry {
    var unlogged = 0
    var loggedAt: NIODeadline?
  }

  private let interval: TimeAmount
  private var entries: [Key: Entry] = [:]

  public init(interval: TimeAmount = .minutes(1)) { self.interval = interval }

  /// Counts an event.
  ///
  /// - Returns: The number of events since the last log entry, this one included, if another entry is due.
  public mutating func count(_ key: Key, at now: NIODeadline) -> Int? {
    var entry = entries[key, default: Entry()]
    defer { entries[key] = entry }
    entry.unlogged += 1
    if let last = entry.loggedAt, now - last < interval { return nil }
    defer { entry.unlogged = 0 }
    entry.loggedAt = now
    return entry.unlogged
  }
}
