import Logging
import Synchronization

/// A `swift-log` handler that writes one structured entry per message, numbers for `.stringConvertible` metadata that
/// is an `Int`. Entries from `notice` on are written at once.
public struct StructuredLogHandler: LogHandler {
  public var metadata: Logger.Metadata = [:]
  /// The least severe level that is logged. A single logger can only be less verbose than the process.
  public var logLevel: Logger.Level {
    get { max(own, threshold.level) }
    set { own = newValue }
  }
  private var own = Logger.Level.trace
  private let threshold: LogThreshold
  private let label: String
  private let sink: LogSink
  private let format: LogFormat

  public init(label: String, threshold: LogThreshold, format: LogFormat, sink: LogSink) {
    self.label = label
    self.threshold = threshold
    self.format = format
    self.sink = sink
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    var line = LogLine(format: format)
    line.addTime()
    line.add("level", event.level.rawValue)
    line.add("logger", label)
    line.add("message", "\(event.message)")
    let all = metadata.merging(event.metadata ?? [:]) { $1 }
    for (name, value) in all.sorted(by: { $0.key < $1.key }) {
      if case .stringConvertible(let number as Int) = value {
        line.add(named: name, number)
      } else {
        line.add(named: name, "\(value)")
      }
    }
    sink.write(line.end(), isUrgent: event.level >= .notice)
  }
}

/// The least severe level that the process logs. All its loggers share it, so that a reload reaches every copy.
public final class LogThreshold: Sendable {
  private static let levels = Logger.Level.allCases

  private let index: Atomic<Int>

  public init(_ level: Logger.Level) { index = Atomic(Self.index(of: level)) }

  /// The threshold. Safe to read and set from any thread.
  public var level: Logger.Level {
    get { Self.levels[index.load(ordering: .relaxed)] }
    set { index.store(Self.index(of: newValue), ordering: .relaxed) }
  }

  private static func index(of level: Logger.Level) -> Int { levels.firstIndex(of: level) ?? 0 }
}
