import Idempotency
import Logging
import Platform
import Synchronization

/// The log entries about Redis that several connections would repeat. Safe to use from any thread.
final class RedisWarnings: Sendable {
  private let logger: Logger
  private let pace = Mutex(WarningPace())

  init(logger: Logger) { self.logger = logger }

  /// Logs a warning about a Redis that may lose records.
  func warn(_ doubt: String) {
    guard pace.withLock({ $0.isDue(doubt, at: .now) }) else { return }
    logger.warning("Redis may lose records, and a lost record lets a retry run twice: \(doubt)")
  }

  /// Logs that a Redis is refused.
  func refuse(_ reason: String) {
    if pace.withLock({ $0.isDue(reason, at: .now) }) { logRefusal(reason) }
  }

  /// Logs that a Redis is refused until `accept` reports the end of the reason.
  func refuseUntilAccepted(_ reason: String) {
    if pace.withLock({ $0.begins(reason, at: .now) }) { logRefusal(reason) }
  }

  private func logRefusal(_ reason: String) {
    logger.error("Redis is refused, and no protected request runs: \(reason)")
  }

  /// Logs that a reason for which Redis was refused is over.
  func accept(after reason: String) {
    guard pace.withLock({ $0.ends(reason) }) else { return }
    logger.notice("Redis is accepted again", metadata: ["after": "\(reason)"])
  }
}

/// The pace of the log entries about Redis, by their texts: a text is due again after an interval. Pure.
struct WarningPace {
  /// The minimum time between two equal entries, which would otherwise come from every loop's connection at each
  /// reconnection.
  static let interval = Milliseconds.seconds(60)

  /// The time of the last entry with each text. A text that is due is removed with the next entry.
  private var loggedAt: [String: BootInstant] = [:]
  /// The reasons that stand until their end is reported.
  private var standing: Set<String> = []

  /// The number of texts that are kept.
  var count: Int { loggedAt.count }

  /// Returns whether an entry is due, and then notes it as logged.
  ///
  /// - Parameter text: The entry's text. It contains nothing that changes from one inspection to the next.
  mutating func isDue(_ text: String, at now: BootInstant) -> Bool {
    if let last = loggedAt[text], now - last < Self.interval { return false }
    loggedAt = loggedAt.filter { now - $0.value < Self.interval }
    loggedAt[text] = now
    return true
  }

  /// Notes a reason that stands until `ends`. Returns whether its entry is due, as for any other.
  mutating func begins(_ reason: String, at now: BootInstant) -> Bool {
    standing.insert(reason)
    return isDue(reason, at: now)
  }

  /// Notes the end of a reason, whose next beginning is due at once. Returns whether it stood until now.
  mutating func ends(_ reason: String) -> Bool {
    loggedAt[reason] = nil
    return standing.remove(reason) != nil
  }
}
