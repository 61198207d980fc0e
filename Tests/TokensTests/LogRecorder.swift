import Logging
import Synchronization

/// Keeps what was logged.
final class LogRecorder: LogHandler {
  struct Entry {
    let level: Logger.Level
    let message: String
    let metadata: Logger.Metadata
  }

  private let recorded = Mutex<[Entry]>([])

  /// The entries of a level.
  func entries(at level: Logger.Level) -> [Entry] {
    recorded.withLock { entries in entries.filter { $0.level == level } }
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
    let entry = Entry(level: event.level, message: "\(event.message)", metadata: event.metadata ?? [:])
    recorded.withLock { $0.append(entry) }
  }
}
