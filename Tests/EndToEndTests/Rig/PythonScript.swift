import Foundation
import TestSupport
import Testing

/// A script of `Clients`, run by the Python that has what they import.
enum PythonScript {
  /// Runs it and decodes the JSON that it prints.
  static func run<Result: Decodable>(
    _ script: String, _ arguments: [String], as type: Result.Type = Result.self
  ) async throws -> Result {
    guard let python = ProcessInfo.processInfo.environment["SEMEL_TEST_PYTHON"] else {
      throw TestFailure(
        "No Python with the clients' libraries: run deploy/test, which makes one and sets SEMEL_TEST_PYTHON.")
    }
    let path = try #require(Bundle.module.path(forResource: script, ofType: "py", inDirectory: "Clients"))
    let process = try ManagedProcess([python, path] + arguments)
    let exit = try await process.exit(within: .seconds(50))
    guard exit == .code(0) else {
      throw TestFailure("\(script) ended with \(exit):\n\(process.output)\(process.errors)")
    }
    return try JSONDecoder().decode(Result.self, from: Data(process.state.value.output))
  }
}
