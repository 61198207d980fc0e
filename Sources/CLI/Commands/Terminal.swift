import Glibc

/// The output that a terminal can show, and that a file or a pipe must not contain.
enum Terminal {
  enum Colour: String {
    case good = "32"
    case warning = "33"
    case bad = "31"
  }

  /// Whether output may be coloured: it is a terminal, and the user has not set `NO_COLOR` (https://no-color.org).
  static let hasColours =
    isatty(STDOUT_FILENO) == 1 && value(of: "NO_COLOR").isEmpty && !["", "dumb"].contains(value(of: "TERM"))

  static let showsProgress = isatty(STDERR_FILENO) == 1 && !["", "dumb"].contains(value(of: "TERM"))

  static func coloured(_ text: String, _ colour: Colour?) -> String {
    guard hasColours, let colour else { return text }
    return "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
  }

  /// Writes a line in the place of the one before; an empty one ends with the place empty.
  static func showProgress(_ text: String) {
    guard showsProgress else { return }
    let line = Array("\r\u{1B}[K\(text)".utf8)
    _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }

  private static func value(of variable: String) -> String {
    getenv(variable).map { String(cString: $0) } ?? ""
  }
}
