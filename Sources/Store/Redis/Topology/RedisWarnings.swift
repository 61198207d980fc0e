import Idempotency
import Logging
import Platform
import Synchronization

/// The log entries about Redis that several connections would repeat. Safe to use from any thread.
final class RedisWarnings: Sendable {
  private let logger: Logger
  private let pace = Mutex(WarningPace())

  init(logger: Logger) { self.logger = logger }

  func warn(_ doubt: String) {
    guard pace.withLock({ $0.isDue(doubt, at: .now) }) else { return }
    logger.warning("Redis may lose records, and a lost record lets a retry run twice: \(doubt)")
  }

  func refuse(_ reason: String) {
    if pace.withLock({ $0.isDue(reason, at: .now) }) { logRefusal(reason) }
  }

  func refuseUntilAccepted(_ reason: String) {
    if pace.withLock({ $0.begins(reason, at: .now) }) { logRefusal(reason) }
  }

  private func logRefusal(_ reason: String) {
    logger.error("Redis is refused, and no protected request runs: \(reason)")
  }

  func accept(after reason: String) {
    guard pace.withLock({ $0.ends(reason) }) else { return }
    logger.notice("Redis is accepted again", metadata: ["after": "\(reason)"])
  }
}

/// The pace of the log entries about Redis: a text is due again after an interval. Pure.
struct WarningPace {
  /// The minimum time between two equal entries, of several loops.
  static let interval = Milliseconds.seconds(60)

  /// The time of the last entry with each text.
  private var loggedAt: [String: BootInstant] = [:]
  private var standing: Set<String> = []

  var count: Int { loggedAt.count }

  /// Returns whether an entry is due, and notes it as logged. The text has nothing that changes between inspections.
  mutating func isDue(_ text: String, at now: BootInstant) -> Bool {
    if let last = loggedAt[text], now - last < Self.interval { return false }
    loggedAt = loggedAt.filter { now - $0.value < Self.interval }
    loggedAt[text] = now
    return true
  }

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
