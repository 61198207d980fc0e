import Idempotency
import Logging
import Platform
import Synchronization

/// The pause in which a process leaves the index of open records alone, because Redis forbids a command that it needs, or
/// because another program has taken one of its keys.
///
/// The index is whole only if each event loop writes its part, so that they all pause together. Safe from any thread.
final class OpenIndexPause: Sendable {
  /// The use that may be made of the index.
  enum Use { case free, none, trial }

  private let span: Milliseconds
  private let logger: Logger
  /// The end of the pause; `nil` if there is none.
  private let end = Mutex<BootInstant?>(nil)

  init(span: Milliseconds, logger: Logger) {
    self.span = span
    self.logger = logger
  }

  func use(at now: BootInstant) -> Use {
    guard let end = end.withLock({ $0 }) else { return .free }
    return now < end ? .none : .trial
  }

  /// Takes the error of one of the index's commands. Begins a pause if it is one that lasts.
  func failed(_ error: StoreError, at now: BootInstant) {
    let reason: String
    switch error {
    case .refused(let text), .unreadable(let text): reason = text
    case .busy, .fateUnknown, .unavailable: return
    }
    let isFirst = end.withLock { end in
      defer { end = now + span }
      return end == nil
    }
    guard isFirst else { return }
    logger.warning(
      "Redis forbids the commands of the index of open records, and lists and counts read the whole store instead: run semel check, which names what Semel's user lacks. The commands are tried again",
      metadata: ["reason": "\(reason)"])
  }

  /// Ends the pause, since Redis takes each of the commands.
  func ended() {
    let wasPaused = end.withLock { end in
      defer { end = nil }
      return end != nil
    }
    guard wasPaused else { return }
    logger.notice("Redis allows the commands of the index of open records")
  }
}

extension RedisNodes {
  /// The reply to a command on one of the index's sets, whose key is the second word.
  func indexReply(to words: [String]) async throws(StoreError) -> RedisValue {
    do throws(StoreError) {
      return try await reply(to: words, .key(words[1]))
    } catch {
      subscriber.indexPause.failed(error, at: .now)
      throw error
    }
  }

  /// Whether the index may be used. After a pause its commands are tried, in a form that changes nothing.
  func mayUseIndex() async -> Bool {
    switch subscriber.indexPause.use(at: .now) {
    case .free: return true
    case .none: return false
    case .trial: break
    }
    for key in [keys.open, keys.openKeys] {
      for words in [
        ["ZADD", key, "XX", "0", "trial"], ["ZREM", key, "trial"], ["ZCOUNT", key, "0", "0"],
        ["ZRANGEBYSCORE", key, "0", "0", "LIMIT", "0", "1"],
      ] {
        guard (try? await indexReply(to: words)) != nil else { return false }
      }
    }
    subscriber.indexPause.ended()
    return true
  }
}
