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

  @Test func `what is wrong outside of the store does not keep from counting or copying it`() async throws {
    try await Rig.run { rig in
      let directory = TemporaryDirectory()
      let file = directory.file("semel.yaml")
      expectExecuted(try await rig.order("k"))
      try (rig.text(of: rig.configuration) + "tracing: {otlp: '${SEMEL_TEST_MISSING}'}\n").write(
        toFile: file, atomically: true, encoding: .utf8)
      #expect(try await statistics(rig, file)["completed"] == 1)
      _ = try await rig.command(["store", "backup", file, directory.file("copy.db")])
      let checked = try await rig.command(["check", file], ends: .code(78))
      #expect(checked.errors.contains("the environment has no SEMEL_TEST_MISSING"), "\(checked.errors)")
      withExtendedLifetime(directory) {}
    }
  }

  @Test func `the progress of a copy is shown on a terminal, and nowhere else`() async throws {
    try await Rig.run { rig in
      let directory = TemporaryDirectory()
      let file = directory.file("semel.yaml")
      try rig.writeConfiguration(to: file)
      let shown = try Python.startOnTerminal(
        [SemelProcess.binary, "store", "backup", file, directory.file("copy.db")])
      #expect(try await shown.exit() == .code(0), "\(shown.output)")
      #expect(shown.output.contains("\r\u{1B}[K100 % copied …\r\u{1B}[K"), "\(shown.output)")
      let piped = try await rig.command(["store", "backup", file, directory.file("other.db")])
      #expect(!(piped.output + piped.errors).contains("\u{1B}"), "\(piped.errors)")
      withExtendedLifetime(directory) {}
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

  @Test func `a copy that is put back tells that newer keys are forgotten, and counts attempts anew`()
    async throws
  {
    try await Rig.run { rig in
      let directory = TemporaryDirectory()
      let (file, copy) = (directory.file("semel.yaml"), directory.file("copy.db"))
      try rig.writeConfiguration(to: file)
      rig.backend.on("/v1/busy", inTurn: [Reply(503), Reply(201)])
      expectExecuted(try await rig.order("before"))
      #expect(try await rig.order("busy", path: "/v1/busy").status == 503)
      _ = try await rig.command(["store", "backup", file, copy])
      #expect(!FileManager.default.fileExists(atPath: copy + "-wal"))
      expectExecuted(try await rig.order("after"))
      let ports = SemelProcess.Ports()
      let start = { (members: [String: String]) in
        var changed = rig.configuration
        changed.storeMembers = members
        return changed.text(ports: ports, backend: rig.backend.port, storePath: copy, redis: nil)
      }
      // It is refused, and so again, until somebody has accepted what it lacks.
      for _ in 0..<2 {
        try start(["require_durable": "true"]).write(toFile: file, atomically: true, encoding: .utf8)
        let refused = try ManagedProcess([SemelProcess.binary, "run", file])
        #expect(try await refused.exit() == .code(1))
        #expect(refused.errors.contains("in which newer keys are missing"), "\(refused.errors)")
      }
      let restored = try await SemelProcess(ports: ports, configuration: start([:]))
      let line = try await restored.process.line(containing: "the file is a copy of 20")
      #expect(line.contains(#""level":"critical""#), "\(line)")
      try await restored.counter("semel_store_losses_total", becomes: 1)
      expectReplayed(try await rig.order("before", at: restored), 201)
      // It ran before as attempt 1, by an owner that a backend fences off by this number.
      expectExecuted(try await rig.order("after", at: restored))
      expectExecuted(try await rig.order("busy", path: "/v1/busy", at: restored))
      #expect(rig.backend.requests.suffix(2).map(\.attempt) == ["1000000001", "1000000002"])
      try await restored.kill()
      try await restored.start()
      expectExecuted(try await rig.order("later", at: restored))
      #expect(rig.backend.requests.last?.attempt == "1000000001")
      #expect(!restored.process.output.contains("is a copy of"))
      #expect(try await restored.counter("semel_store_losses_total") == 0)
      try await restored.kill()
      try start(["require_durable": "true"]).write(toFile: file, atomically: true, encoding: .utf8)
      let accepted = try await SemelProcess(ports: ports, configuration: start(["require_durable": "true"]))
      expectReplayed(try await rig.order("after", at: accepted), 201)
      try await accepted.kill()
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
