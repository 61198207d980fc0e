import Logging
import Synchronization

/// Keeps what was logged.
public final class LogRecorder: LogHandler {
  public struct Entry: Sendable {
    public let level: Logger.Level
    public let message: String
    public let metadata: Logger.Metadata
  }

  private let recorded = Mutex<[Entry]>([])

  public init() {}

  public var messages: [String] { recorded.withLock { entries in entries.map(\.message) } }

  /// The messages of a level.
  public func messages(at level: Logger.Level) -> [String] { entries(at: level).map(\.message) }

  /// The entries of a level.
  public func entries(at level: Logger.Level) -> [Entry] {
    recorded.withLock { entries in entries.filter { $0.level == level } }
  }

  public var metadata: Logger.Metadata {
    get { [:] }
    set {}
  }
  public var logLevel: Logger.Level {
    get { .trace }
    set {}
  }

  public subscript(metadataKey _: String) -> Logger.Metadata.Value? {
    get { nil }
    set {}
  }

  public func log(event: LogEvent) {
    let entry = Entry(level: event.level, message: "\(event.message)", metadata: event.metadata ?? [:])
    recorded.withLock { $0.append(entry) }
  }
}
