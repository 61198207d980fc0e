import Glibc

/// The output of errors to the person at the terminal.
enum StandardError {
  static func print(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
