/// All that is wrong with a configuration file, in the order of the file.
package struct SettingsErrors: Error, Hashable, CustomStringConvertible {
  package var issues: [SettingsIssue]

  package init(issues: [SettingsIssue]) { self.issues = issues }

  /// A line for each issue.
  package var description: String { issues.map(\.description).joined(separator: "\n") }
}
