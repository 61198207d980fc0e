/// All errors in a configuration file, in the order of the file.
public struct SettingsErrors: Error, Hashable, CustomStringConvertible {
  public var issues: [SettingsIssue]

  public init(issues: [SettingsIssue]) { self.issues = issues }

  /// One line for each issue.
  public var description: String { issues.map(\.description).joined(separator: "\n") }
}
