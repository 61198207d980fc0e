import Idempotency
import Logging
import Platform
import Synchronization

/// The log entries about Redis that several connections would repeat. Safe to use from any thread.
final class RedisWarnings: Sendable {
  /// The minimum time between two equal entries, which would otherwise come from every loop's connection at each
  /// reconnection.
  private static let interval = Milliseconds.seconds(60)

  private let logger: Logger
  private let written = Mutex<[String: BootInstant]>([:])
  private let hindrance = Mutex<String?>(nil)

  init(logger: Logger) { self.logger = logger }

  /// Logs a warning about a Redis that may lose records.
  func warn(_ doubt: String) {
    guard isNews(doubt) else { return }
    logger.warning("Redis may lose records, and a lost record lets a retry run twice: \(doubt)")
  }

  /// Logs that a Redis is refused.
  func refuse(_ reason: String) {
    guard isNews(reason) else { return }
    logger.error("Redis is refused, and no protected request runs: \(reason)")
  }

  /// Logs that a reason for which Redis was refused is over.
  func accept(after reason: String) {
    guard written.withLock({ $0.removeValue(forKey: reason) }) != nil else { return }
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

  private func isNews(_ text: String) -> Bool {
    let now = BootInstant.now
    return written.withLock { written in
      if let last = written[text], now - last < Self.interval { return false }
      written[text] = now
      return true
    }
  }
}
