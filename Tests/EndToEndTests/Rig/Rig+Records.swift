import TestSupport
import Testing

extension Rig {
  /// Runs `semel key` against the admin listener.
  @discardableResult
  func key(
    _ arguments: [String], ends exit: ManagedProcess.Exit = .code(0)
  ) async throws -> ManagedProcess {
    let process = try ManagedProcess(
      [SemelProcess.binary, "key"] + arguments + ["--admin", "http://127.0.0.1:\(semel.ports.admin)"])
    let end = try await process.exit()
    #expect(end == exit, "\(process.output)\(process.errors)")
    return process
  }

  /// The options of `semel key` that select the record of an order by the usual caller.
  static func selection(_ key: String) -> [String] {
    [
      "--route", "orders", "--key", key, "--caller", "header:Authorization=Bearer alice", "--path",
      "/v1/orders", "--method", "POST", "--host", "orders.example",
    ]
  }
}
