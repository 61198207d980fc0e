import Foundation
import TestSupport
import Testing

/// `semel store`: the embedded store's file, while Semel runs.
struct StoreCommandTests {
  private func statistics(_ rig: Rig, _ file: String) async throws -> [String: Int] {
    let output = try await rig.command(["store", "stats", "--json", file]).output
    return try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Int])
  }

  @Test func `records are counted by state while Semel runs`() async throws {
    try await Rig.run { rig in
      let directory = TemporaryDirectory()
      let file = directory.file("semel.yaml")
      try rig.writeConfiguration(to: file)
      rig.backend.on(
        "/v1/orders", inTurn: [Reply(201, body: "0123456789"), .unanswered, Reply(503), Reply(201)])
      for key in ["completed", "unknown", "released"] { _ = try await rig.order(key) }
      let counted = try await statistics(rig, file)
      #expect(counted["completed"] == 1 && counted["unknown"] == 1 && counted["released"] == 1, "\(counted)")
      #expect(counted["response_bytes"] ?? 0 >= 10 && counted["file_bytes"] ?? 0 > 0, "\(counted)")
      let table = try await rig.command(["store", "stats", file]).output
      #expect(table.contains("completed   1\n") && table.contains("responses"), "\(table)")
      expectExecuted(try await rig.order("later"))
      #expect(try await statistics(rig, file)["completed"] == 2)
    }
  }

  @Test func `a copy made under load is whole, and a process runs on it`() async throws {
    try await Rig.run { rig in
      let directory = TemporaryDirectory()
      let (file, copy) = (directory.file("semel.yaml"), directory.file("copy.db"))
      try rig.writeConfiguration(to: file)
      let before = (0..<20).map { "before\($0)" }
      for key in before { expectExecuted(try await rig.order(key)) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for number in 0..<50 { expectExecuted(try await rig.order("during\(number)")) }
        }
        group.addTask { _ = try await rig.command(["store", "backup", file, copy]) }
        try await group.waitForAll()
      }
      let again = try await rig.command(["store", "backup", file, copy], ends: .code(1))
      #expect(again.errors.contains("File exists"), "\(again.errors)")
      let mode = try FileManager.default.attributesOfItem(atPath: copy)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      let ports = SemelProcess.Ports()
      let text = rig.configuration.text(
        ports: ports, backend: rig.backend.port, storePath: copy, redis: nil)
      let restored = try await SemelProcess(ports: ports, configuration: text)
      for key in before { expectReplayed(try await rig.order(key, at: restored), 201) }
      try await restored.kill()
    }
  }

  @Test func `a store that is no file of Semel is refused`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      let directory = TemporaryDirectory()
      let file = directory.file("semel.yaml")
      try rig.writeConfiguration(to: file)
      let redis = try await rig.command(["store", "stats", file], ends: .code(1))
      #expect(redis.errors.contains("the store is a Redis"), "\(redis.errors)")
      var embedded = rig.configuration
      embedded.store = .embedded
      let cases: [(String?, String)] = [
        (nil, "no such file"), ("text, and no database at all", "not a database"),
      ]
      for (content, reason) in cases {
        let path = directory.file("store.db")
        if let content { try content.write(toFile: path, atomically: true, encoding: .utf8) }
        try embedded.text(ports: rig.semel.ports, backend: 1, storePath: path, redis: nil)
          .write(toFile: file, atomically: true, encoding: .utf8)
        let refused = try await rig.command(["store", "backup", file, directory.file("c")], ends: .code(1))
        #expect(refused.errors.contains(reason), "\(refused.errors)")
      }
    }
  }
}
