import ArgumentParser
import CSwiftRuntime
// `stdout` is a variable of C, which no part of Semel changes.
@preconcurrency import Glibc
import Settings
import UnixSignals

/// `semel`: the command line. Each command gives its name: to derive it from a type's description, the runtime searches
/// the whole binary for each of them, at each start.
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
      StoreCommand.self, Health.self, ConformanceCommand.self, OpenAPICommand.self,
    ])

  static func main() async {
    StandardStreams.openMissing()
    do {
      var command = try parseAsRoot()
      do {
        if var asynchronous = command as? any AsyncParsableCommand {
          try await asynchronous.run()
        } else {
          try command.run()
        }
      } catch let error as ValidationError {
        // The command has refused its arguments only now, and ends as one that cannot be parsed.
        StandardError.print("Error: \(error.message)\n\(usage(of: type(of: command)))")
        throw ExitCode.usage
      }
      try StandardStreams.finishOutput()
    } catch {
      end(with: error)
    }
  }

  /// The usage of a command, as it stands below the error in a command line that cannot be parsed.
  private static func usage(of command: any ParsableCommand.Type) -> String {
    let usage = usageString(for: command)
    let name = usage.split(separator: " ").prefix { !"<[-".contains($0.prefix(1)) }.joined(separator: " ")
    let lines = usage.split(separator: "\n", omittingEmptySubsequences: false)
    return "Usage: \(lines.joined(separator: "\n       "))\n  See '\(name) --help' for more information."
  }

  /// Ends the process: help and the version with success, a bad command line with `usage`, others with their own code.
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
    let isWritten = !code.isSuccess || (try? StandardStreams.finishOutput()) != nil
    exit(withError: isWritten ? code : ExitCode.failure)
  }
}

extension ExitCode {
  static let usage = ExitCode(2)
  /// The configuration is bad (`EX_CONFIG` of sysexits.h).
  static let badConfiguration = ExitCode(78)
}

func failed(_ reason: String) -> ExitCode {
  StandardError.print("semel: \(reason)")
  return .failure
}

/// Refuses a command line unless a condition is met.
func require(_ isMet: Bool, _ refusal: @autoclosure () -> String) throws(ValidationError) {
  if !isMet { throw ValidationError(refusal()) }
}

/// The streams that the process was given.
enum StandardStreams {
  /// Opens those that the caller has closed: a file of Semel's own would get their numbers, and what is printed.
  static func openMissing() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
      // The lowest free number is this one.
      _ = open("/dev/null", O_RDWR)
    }
  }

  /// Writes what was printed. Reports output that could not be written, such as that to a full disk.
  static func finishOutput() throws {
    let isFlushed = fflush(nil) == 0
    let reason = isFlushed ? "" : ": \(String(cString: strerror(errno)))"
    // The system writes a long text in parts. Once it has failed at one, there may be nothing left to flush.
    guard !isFlushed || ferror(stdout) != 0, !isReaderGone else { return }
    throw failed("the output cannot be written\(reason)")
  }

  /// Whether the reader of a pipe has gone, as in `semel key list | head -1`.
  private static var isReaderGone: Bool {
    var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
    return poll(&output, 1, 0) > 0 && output.revents & Int16(POLLERR) != 0
  }
}

enum StandardError {
  static func print(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}

enum Version {
  static let text = "0.1.0"
}

struct Run: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Run the proxy.",
    discussion: """
      SIGTERM ends it in order: it stops being ready, finishes and records what is in flight, and marks as unknown \
      what it cannot finish within shutdown_grace. SIGHUP reads the configuration again, and puts it to work without \
      dropping a connection, or refuses it whole and says why.
      """)

  @Argument(help: "The configuration file.")
  var file: String?

  @Option(help: "The configuration file, as an option.")
  var config: String?

  func validate() throws {
    try require((file == nil) != (config == nil), "give one configuration file: semel run FILE")
  }

  func run() async throws {
    guard let path = file ?? config else { preconditionFailure("Run: not validated") }
    #if !DEBUG
      // Semel's own modules are compiled so. NIO and Crypto would spend a thirtieth of a replay's instructions on it.
      semel_disableExclusivityChecking()
    #endif
    // The signal ends a process that does not trap it, and the start may take as long as the store does.
    let reloads = await UnixSignalsSequence(trapping: .sighup)
    let file = try ConfigurationFile.load(path)
    try await Assembly(settings: file.settings, reloading: file, on: reloads).run()
  }
}

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
