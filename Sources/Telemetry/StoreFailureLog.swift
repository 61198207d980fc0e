import Logging
import Synchronization

/// Logs the failures of store commands once per change of state, and with a count per minute while they last.
///
/// One for the process, whatever the number of event loops. A success costs one relaxed load.
public final class StoreFailureLog: Sendable {
  private let state = Mutex(StoreFailureState())
  private let isFailing = Atomic<Bool>(false)
  private let logger: Logger

  public init(logger: Logger) { self.logger = logger }

  /// - Parameters:
  ///   - error: the store's text; never a key or a body.
  ///   - now: a monotonic clock, in nanoseconds.
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

/// Decides which failures of the store are logged.
struct StoreFailureState {
  /// An error's text, and its failures since its last log entry.
  private struct Entry {
    var count = 0
    var loggedAt: UInt64?
  }

  struct LogEntry: Equatable {
    /// The failures since the last entry, this one included.
    var count: Int
  }

  /// The shortest time between two entries about one error, in nanoseconds.
  static let pause: UInt64 = 60_000_000_000
  /// The time without a failure after which a success means that the failures are over, in nanoseconds.
  static let quiet: UInt64 = 5_000_000_000
  /// The number of errors that are told apart; the others share one entry, since a text may hold a number.
  static let maxErrors = 16
  private static let others = ""

  private var entries: [String: Entry] = [:]
  private var lastFailureAt: UInt64?
  /// The failures since the last success that was logged.
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

  /// The number of failures that are over; `nil` while they may go on.
  mutating func succeeded(now: UInt64) -> Int? {
    guard let last = lastFailureAt, now > last, now - last >= Self.quiet else { return nil }
    lastFailureAt = nil
    entries = entries.filter { now &- ($0.value.loggedAt ?? 0) < Self.pause }
    defer { failedInAll = 0 }
    return failedInAll
  }
}
