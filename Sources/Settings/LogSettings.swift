/// The contents and the format of the log.
public struct LogSettings: Hashable, Sendable {
  public enum Level: String, Sendable, CaseIterable {
    case trace, debug, info, notice, warning, error, critical
  }
  public enum Format: String, Sendable, CaseIterable { case json, text }

  public var level: Level = .info
  public var format: Format = .json
  /// Whether each request gets a log entry.
  public var access = true
  /// The number of replays for each one that is logged; 0 logs none.
  public var replaySample = 1

  public init() {}
}

extension LogSettings {
  static let schema = Schema(LogSettings()) {
    Member("level", \.level, .word, "the least severity that is logged")
    Member("format", \.format, .word, "the format of log entries").restart
    Member("access", \.access, .flag, "one log entry for each request, whatever `level` is")
    Member(
      "replay_sample", \.replaySample, .integer(0...1_000_000),
      "the number of replays of which one is logged; 0 logs none")
  }
}
