import Foundation
import TestSupport
import Testing

/// Command lines that a command refuses only when it runs.
struct UsageTests {
  private func errors(_ arguments: [String]) async throws -> [Substring] {
    let process = try ManagedProcess([SemelProcess.binary] + arguments)
    #expect(try await process.exit() == .code(2), "\(arguments)")
    return process.errors.split(separator: "\n")
  }

  @Test(arguments: [
    (["http://127.0.0.1:1/", "--request", "/nowhere"], "/nowhere cannot be read"),
    (["127.0.0.1", "--request", "BODY"], "127.0.0.1 is not an absolute URL of HTTP"),
    (
      ["http://127.0.0.1:1/", "--request", "BODY", "--only", "9.9"],
      "--only: there is no section or case 9.9"
    ),
    (
      ["http://127.0.0.1:1/", "--request", "BODY", "--profile", "x"],
      "--profile is ietf, stripe or semel, not x"
    ),
  ])
  func `wrong usage shows the usage of its command`(arguments: [String], error: String) async throws {
    let directory = TemporaryDirectory()
    let body = directory.file("body.json")
    try "{}".write(toFile: body, atomically: true, encoding: .utf8)
    let arguments = arguments.map { $0 == "BODY" ? body : $0 }
    let refused = try await errors(["conformance"] + arguments)
    #expect(refused.first == "Error: \(error)")
    // The same as where the line cannot be parsed.
    let usage = try await errors(["conformance"] + arguments + ["--level", "x"]).drop {
      !$0.hasPrefix("Usage:")
    }
    #expect(refused.dropFirst() == usage, "\(refused)")
    #expect(usage.first?.hasPrefix("Usage: semel conformance ") == true)
    #expect(usage.last == "  See 'semel conformance --help' for more information.")
  }

  @Test(arguments: [
    (["demo", "--port", "99999"], "--port is a port from 0 to 65535, and 0 is any free one"),
    (["demo", "--backend-port=-1"], "--backend-port is a port from 0 to 65535, and 0 is any free one"),
    (
      ["explain", "semel.yaml", "POST", "v1/orders"],
      "give an absolute URL, or a path with its slash: http://host/v1/orders or /v1/orders"
    ),
    (
      ["explain", "semel.yaml", "POST", "127.0.0.1:8080/v1/orders"],
      "give an absolute URL, or a path with its slash: http://host/v1/orders or /v1/orders"
    ),
  ])
  func `a port or a URL that cannot be is refused with what is expected`(
    arguments: [String], error: String
  ) async throws {
    let refused = try await errors(arguments)
    #expect(refused.first == "Error: \(error)", "\(refused)")
  }
}
