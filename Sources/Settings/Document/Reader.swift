/// The shared state while a file is read: its name, the environment, and the issues found so far.
final class Reader {
  let file: String
  let environment: [String: String]
  let names: [Position: String]
  private var refusals: [SettingsIssue] = []
  private var doubts: [SettingsIssue] = []
  private var refusedPaths: Set<String> = []

  init(file: String, environment: [String: String], names: [Position: String] = [:]) {
    self.file = file
    self.environment = environment
    self.names = names
  }

  /// The errors in the order of the file.
  var errors: [SettingsIssue] { Self.sorted(refusals) }
  var warnings: [SettingsIssue] { Self.sorted(doubts) }

  func refuse(_ path: String, at position: Position, _ message: String) {
    refusedPaths.insert(path)
    refusals.append(issue(path, position, message))
  }

  func warn(_ path: String, at position: Position, _ message: String) {
    doubts.append(issue(path, position, message))
  }

  /// Whether this member, or a part of it, has been refused, so that further checks of its value make no sense.
  func hasRefused(_ path: String) -> Bool {
    refusedPaths.contains {
      $0.hasPrefix(path) && ["", ".", "["].contains($0.dropFirst(path.count).prefix(1))
    }
  }

  private func issue(_ path: String, _ position: Position, _ message: String) -> SettingsIssue {
    SettingsIssue(file: file, line: position.line, column: position.column, path: path, message: message)
  }

  private static func sorted(_ issues: [SettingsIssue]) -> [SettingsIssue] {
    issues.enumerated().sorted { left, right in
      let places = (left.element.line, left.element.column, left.offset)
      return places < (right.element.line, right.element.column, right.offset)
    }.map(\.element)
  }
}
