import Logging
import Synchronization

/// Keeps the messages that were logged.
final class LogRecorder: LogHandler {
  private let recorded = Mutex<[(level: Logger.Level, message: String)]>([])

  var messages: [String] { recorded.withLock { entries in entries.map { $0.message } } }

  /// The messages of a level.
  func messages(at level: Logger.Level) -> [String] {
    recorded.withLock { entries in entries.filter { $0.level == level }.map { $0.message } }
  }

  var metadata: Logger.Metadata {
    get { [:] }
    set {}
  }
  var logLevel: Logger.Level {
    get { .trace }
    set {}
  }

  subscript(metadataKey _: String) -> Logger.Metadata.Value? {
    get { nil }
    set {}
  }

  func log(event: LogEvent) {
    recorded.withLock { $0.append((event.level, "\(event.message)")) }
  }
}
