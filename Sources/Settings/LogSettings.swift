/// What is logged, and how.
package struct LogSettings: Hashable, Sendable {
  package enum Level: String, Sendable, CaseIterable {
    case trace, debug, info, notice, warning, error, critical
  }
  package enum Format: String, Sendable, CaseIterable { case json, text }

  package var level: Level = .info
  package var format: Format = .json
  /// Whether each request is logged.
  package var access = true
  /// Of so many replays one is logged; 0: none.
  package var replaySample = 1

  package init() {}
}

extension LogSettings {
  mutating func read(_ section: Section) {
    section.choice("level", into: &level)
    section.choice("format", into: &format)
    section.flag("access", into: &access)
    section.integer("replay_sample", into: &replaySample, in: 0...1_000_000)
  }
}
