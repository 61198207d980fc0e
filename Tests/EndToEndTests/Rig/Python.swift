import Foundation
import TestSupport
import Testing

/// Scripts of `Clients`, run by the Python that `deploy/test` furnishes with what they import.
enum Python {
  static func start(_ script: String, _ arguments: [String]) throws -> ManagedProcess {
    guard let python = ProcessInfo.processInfo.environment["SEMEL_TEST_PYTHON"] else {
      try Tool.skip("SEMEL_TEST_PYTHON names no Python with the scripts' packages; see Tests/README.md")
    }
    let path = try #require(Bundle.module.path(forResource: script, ofType: "py", inDirectory: "Clients"))
    return try ManagedProcess([python, path] + arguments)
  }

  /// Starts a script of `Clients` that imports only Python's standard library, by the installed Python.
  static func startPlain(_ script: String, _ arguments: [String]) throws -> ManagedProcess {
    let path = try #require(Bundle.module.path(forResource: script, ofType: "py", inDirectory: "Clients"))
    return try ManagedProcess(["python3", path] + arguments)
  }

  /// Starts a program of a few lines, by the installed Python.
  static func startInline(_ program: String, _ arguments: [String]) throws -> ManagedProcess {
    try ManagedProcess(["python3", "-u", "-c", program] + arguments)
  }

  /// Runs a program of a few lines to its end.
  static func runInline(_ program: String, _ arguments: [String]) async throws {
    let process = try startInline(program, arguments)
    #expect(try await process.exit() == .code(0), "\(process.errors)")
  }

  /// Starts a command on a terminal of its own; its output is all that the command writes there.
  ///
  /// - Parameter noColour: The value of `NO_COLOR`.
  static func startOnTerminal(_ command: [String], noColour: String = "") throws -> ManagedProcess {
    let program = """
      import os, pty, sys
      os.environ.update({'TERM': 'xterm', 'NO_COLOR': sys.argv[1]})
      sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:])))
      """
    return try startInline(program, [noColour] + command)
  }

  /// Starts a server and waits until it reports that it is ready.
  static func serve(_ script: String, _ arguments: [String]) async throws -> ManagedProcess {
    let process = try start(script, arguments)
    try await process.line(containing: "ready")
    return process
  }

  /// Runs a script and decodes what it prints as JSON in its last line.
  static func run<Result: Decodable>(_ script: String, _ arguments: [String]) async throws -> Result {
    try await result(of: start(script, arguments))
  }

  /// The JSON in a script's last line of output, once it has ended.
  static func result<Result: Decodable>(of process: ManagedProcess) async throws -> Result {
    let exit = try await process.exit(within: .seconds(100))
    guard exit == .code(0), let last = process.output.split(separator: "\n").last else {
      throw TestFailure("\(process.name) ended with \(exit):\n\(process.output)\(process.errors)")
    }
    return try JSONDecoder().decode(Result.self, from: Data(last.utf8))
  }
}
