import Logging
import Synchronization

/// Logs failed store commands of the process: the first failure at once, then a count every minute, and their end. A
/// successful command costs one relaxed load.
public final class StoreFailureLog: Sendable {
  private let state = Mutex(StoreFailureState())
  private let isFailing = Atomic<Bool>(false)
  private let logger: Logger

  public init(logger: Logger) { self.logger = logger }

  /// Logs or counts a failure, at a monotonic time in nanoseconds. The error's text never contains a key or a body.
  public func failed(_ command: StoreCommand, _ failure: StoreFailure, _ error: String, now: UInt64) {
    let entry = state.withLock { state in
      isFailing.store(true, ordering: .relaxed)
      return state.failed(error, now: now)
    }
    guard let entry else { return }
    logger.error(
      "store commands fail; the next line about this error comes in a minute at the earliest",
      metadata: [
        "command": "\(command.text)", "reason": "\(failure.text)", "error": "\(error)",
        "count": "\(entry.count)",
      ])
  }

  /// Logs the end of the failures, once no command has failed for some seconds.
  public func succeeded(now: @autoclosure () -> UInt64) {
    guard isFailing.load(ordering: .relaxed) else { return }
    let count = state.withLock { state -> Int? in
      guard let count = state.succeeded(now: now()) else { return nil }
      isFailing.store(false, ordering: .relaxed)
      return count
    }
    guard let count else { return }
    logger.notice("store commands succeed again", metadata: ["failed": "\(count)"])
  }
}

/// The decision which store failures are logged. Pure.
struct StoreFailureState {
  private struct Entry {
    var count = 0
    var loggedAt: UInt64?
  }

  struct LogEntry: Equatable {
    /// The number of failures since the last entry, this one included.
    var count: Int
  }

  /// The shortest time between two entries about one error.
  static let pause: UInt64 = 60_000_000_000
  /// The time without a failure after which the failures are over.
  static let quiet: UInt64 = 5_000_000_000
  /// The maximum number of distinct errors; the others share one entry.
  static let maxErrors = 16
  private static let others = ""

  private var entries: [String: Entry] = [:]
  private var lastFailureAt: UInt64?
  private var failedInAll = 0

  mutating func failed(_ error: String, now: UInt64) -> LogEntry? {
    lastFailureAt = now
    failedInAll += 1
    let isKnown = entries[error] != nil || entries.count < Self.maxErrors
    let name = isKnown ? error : Self.others
    var entry = entries[name] ?? Entry()
    defer { entries[name] = entry }
    entry.count += 1
    if let loggedAt = entry.loggedAt, now &- loggedAt < Self.pause { return nil }
    let due = LogEntry(count: entry.count)
    entry = Entry(count: 0, loggedAt: now)
    return due
  }

  mutating func succeeded(now: UInt64) -> Int? {
    guard let last = lastFailureAt, now > last, now - last >= Self.quiet else { return nil }
    lastFailureAt = nil
    entries = entries.filter { now &- ($0.value.loggedAt ?? 0) < Self.pause }
    defer { failedInAll = 0 }
    return failedInAll
  }
}
