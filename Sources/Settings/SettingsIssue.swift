/// An error or a warning about a configuration file, with its position.
public struct SettingsIssue: Hashable, Sendable {
  public var file: String
  /// The line, counted from 1.
  public var line: Int
  /// The column, counted from 1 in Unicode scalars.
  public var column: Int
  /// The path of the member, such as `routes[0].lease`; empty for the file itself.
  public var path: String
  /// The message, with the allowed values or a remedy. It quotes numbers alone, since a text may be a secret.
  public var message: String
}

extension SettingsIssue: CustomStringConvertible {
  /// The issue in one line, such as `config.yaml:14:9: routes[0].lease: must be at least 1s`.
  public var description: String {
    let place = "\(file):\(line):\(column): "
    return path.isEmpty ? place + message : place + path + ": " + message
  }
}

/// All errors in a configuration file, in the order of the file.
public struct SettingsErrors: Error, Hashable, CustomStringConvertible {
  public var issues: [SettingsIssue]

  /// One line for each issue.
  public var description: String { issues.map(\.description).joined(separator: "\n") }
}

/// The reason why a text is not valid for a member, as the end of a sentence that begins with the member's path.
struct Refusal: Error, Hashable {
  var message: String

  init(_ message: String) { self.message = message }
}

func require(_ isMet: Bool, _ refusal: @autoclosure () -> String) throws(Refusal) {
  if !isMet { throw Refusal(refusal()) }
}
