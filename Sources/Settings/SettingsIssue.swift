/// One thing in a configuration file that is wrong, or doubtful, and where it stands.
public struct SettingsIssue: Hashable, Sendable {
  public var file: String
  /// Counted from 1.
  public var line: Int
  /// Counted from 1, in Unicode scalars.
  public var column: Int
  /// The member, such as `routes[0].lease`; empty where the file itself is meant.
  public var path: String
  /// Says what is allowed, or what to do; of values it quotes numbers at most, since a text may be a secret.
  public var message: String

  public init(file: String, line: Int, column: Int, path: String, message: String) {
    self.file = file
    self.line = line
    self.column = column
    self.path = path
    self.message = message
  }
}

extension SettingsIssue: CustomStringConvertible {
  /// Such as `config.yaml:14:9: routes[0].lease: must be at least 1s`.
  public var description: String {
    let place = "\(file):\(line):\(column): "
    return path.isEmpty ? place + message : place + path + ": " + message
  }
}
