@testable import Settings

extension Target {
  /// A configuration file: every fault in it is reported with a place that the file has, in the file's order.
  static func settingsFault(in bytes: [UInt8]) -> String? {
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    let result = Settings.load(text: text, file: "f", environment: ["NAME": "value", "EMPTY": ""])
    guard case .failure(let errors) = result else { return nil }
    guard !errors.issues.isEmpty else { return "refused without a reason" }
    for issue in errors.issues where issue.message.isEmpty || !isPlace(issue, in: text) {
      return "no place in the file: \(issue)"
    }
    let places = errors.issues.map { [$0.line, $0.column] }
    return places == places.sorted { $0.lexicographicallyPrecedes($1) }
      ? nil : "out of order: \(errors.issues)"
  }

  /// Whether the place is that of a character, of a line's end, or of the file's: a line behind the last one counts,
  /// as in every editor.
  private static func isPlace(_ issue: SettingsIssue, in text: String) -> Bool {
    Position(line: issue.line, column: issue.column).index(in: text + "\n ") != nil
  }
}
