import Idempotency
import Logging
import Platform
import Synchronization

/// The log entries about Redis that several connections would repeat. Safe to use from any thread.
final class RedisWarnings: Sendable {
  private let logger: Logger
  private let pace = Mutex(WarningPace())
  private let hindrance = Mutex<String?>(nil)

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

  /// The reason for which Redis takes no changes, by the last inspection; `nil` if it takes them.
  var obstacle: String? { hindrance.withLock { $0 } }

  /// Takes an inspection's reason, and logs the beginning and the end of a time in which Redis takes no changes.
  func hinder(_ obstacle: String?) {
    let before = hindrance.withLock { present in
      defer { present = obstacle }
      return present
    }
    if let obstacle, before == nil {
      logger.error(
        "Redis takes no changes: recorded outcomes are replayed, and nothing else runs",
        metadata: ["reason": "\(obstacle)"])
    } else if let before, obstacle == nil {
      logger.notice("Redis takes changes again", metadata: ["after": "\(before)"])
    }
  }
}
