import Idempotency
import Logging
import Platform
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

/// The lost outcomes that this process knows of, so that each is logged and counted once. An owner that died cannot log
/// its losses, so that whoever first meets its lapsed lease does.
public final class LossLog: Sendable {
  /// The latest attempts that were noted, by their records.
  private struct Notes {
    private var attempts = AgingMap<RecordID, Int>(half: 4096)

    mutating func add(_ id: RecordID, _ attempt: Int) -> Bool {
      guard attempts[id] != attempt else { return false }
      attempts[id] = attempt
      return true
    }
  }

  private let losses = Mutex(Notes())
  private let returns = Mutex(Notes())
  private let logger: Logger

  public init(logger: Logger) { self.logger = logger }

  /// Notes a loss that its owner logs.
  public func note(_ id: RecordID, attempt: Int) {
    _ = losses.withLock { $0.add(id, attempt) }
  }

  /// Logs the loss of a record whose owner's lease has lapsed.
  ///
  /// - Returns: Whether it was logged; false for other records, and for those that were logged before.
  public func noteLapse(_ view: RecordView) -> Bool {
    guard view.cause == .leaseLapsed, case .unknown(_, let attempt) = view.standing,
      losses.withLock({ $0.add(view.id, attempt) })
    else { return false }
    let origin = view.attribution
    logger.warning(
      "the outcome of a request was lost",
      metadata: [
        "record": "\(view.id.text)", "route": "\(origin?.route ?? "")",
        "attempt": .stringConvertible(attempt), "cause": "\(LossCause.leaseLapsed.rawValue)",
        "key": "\(origin?.keyDigest ?? "")", "caller": "\(origin?.callerDigest ?? "")",
        "node": "\(origin?.node ?? "")",
        "reason": "its owner was heard of no more: the process died, or did not reach the store",
      ])
    return true
  }

  /// Notes that a delivery has returned to a record of unknown outcome; false if one had before.
  public func isFirstReturn(to id: RecordID, attempt: Int) -> Bool {
    returns.withLock { $0.add(id, attempt) }
  }
}

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
