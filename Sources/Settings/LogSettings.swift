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

  package init() {}
}

extension LogSettings {
  mutating func read(_ section: Section) {
    section.choice("level", into: &level)
    section.choice("format", into: &format)
    section.flag("access", into: &access)
  }
}
