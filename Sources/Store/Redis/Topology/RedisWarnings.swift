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
