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
  mutating func read(_ section: Section) {
    section.choice("level", into: &level)
    section.choice("format", into: &format)
    section.flag("access", into: &access)
    section.integer("replay_sample", into: &replaySample, in: 0...1_000_000)
  }
}

extension LogSettings {
  var shown: Shown {
    [
      "level": .word(level), "format": .word(format), "access": .flag(access),
      "replay_sample": .number(replaySample),
    ]
  }
}
