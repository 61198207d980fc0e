import ArgumentParser
import Glibc

/// `semel`: the command line.
@main
struct Semel: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "semel",
    abstract: "A reverse proxy that makes any HTTP backend idempotent.",
    discussion: """
      Exit codes: 0 success, 1 failed, 2 wrong usage, 3 not reached (conformance), 78 bad configuration.
      """,
    version: Version.text,
    subcommands: [
      Run.self, Check.self, Explain.self, Init.self, Demo.self, Key.self, Tail.self, ShadowReport.self,
      StoreCommand.self, Health.self, ConformanceCommand.self,
    ])

  static func main() async {
    do {
      var command = try parseAsRoot()
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch {
      end(with: error)
    }
  }

  /// Ends the process: help and the version with success, a command line that cannot be parsed with `usage`, and a
  /// failed command with its own exit code.
  private static func end(with error: any Error) -> Never {
    let code: ExitCode
    if let given = error as? ExitCode {
      code = given
    } else {
      let ended = exitCode(for: error)
      code = ended == .validationFailure ? .usage : ended
      let text = fullMessage(for: error)
      if ended.isSuccess { print(text) } else { StandardError.print(text) }
    }
    exit(withError: code)
  }
}

extension ExitCode {
  /// The command line is invalid.
  static let usage = ExitCode(2)
  /// The configuration is bad (`EX_CONFIG` of sysexits.h).
  static let badConfiguration = ExitCode(78)
}

/// The output of errors to the person at the terminal.
enum StandardError {
  static func print(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}

/// The version of this build.
enum Version {
  static let text = "0.1.0"
}
