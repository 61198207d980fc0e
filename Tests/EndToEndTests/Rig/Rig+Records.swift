import Foundation
import TestSupport
import Testing

extension Rig {
  /// Runs `semel key` against the admin listener.
  @discardableResult
  func key(
    _ arguments: [String], ends exit: ManagedProcess.Exit = .code(0), within span: Duration = .seconds(20)
  ) async throws -> ManagedProcess {
    try await command(["key"] + arguments + ["--admin", adminURL], ends: exit, within: span)
  }

  /// Runs `semel` to its end.
  @discardableResult
  func command(
    _ arguments: [String], ends exit: ManagedProcess.Exit = .code(0), within span: Duration = .seconds(20)
  ) async throws -> ManagedProcess {
    let process = try ManagedProcess([SemelProcess.binary] + arguments)
    let end = try await process.exit(within: span)
    #expect(end == exit, "\(arguments): \(process.output)\(process.errors)")
    return process
  }

  var adminURL: String { "http://127.0.0.1:\(semel.ports.admin)" }

  /// Writes the configuration that the process runs on, for commands that read it.
  func writeConfiguration(to path: String) throws {
    try text(of: configuration).write(toFile: path, atomically: true, encoding: .utf8)
  }

  /// The options of `semel key` that select the record of an order by the usual caller.
  static func selection(_ key: String) -> [String] {
    [
      "--route", "orders", "--key", key, "--caller", "header:Authorization=Bearer alice", "--path",
      "/v1/orders", "--method", "POST", "--host", "orders.example",
    ]
  }
}
