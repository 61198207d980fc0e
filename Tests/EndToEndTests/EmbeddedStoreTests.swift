import Foundation
import TestSupport
import Testing

/// The embedded store when its surroundings misbehave: the clock, the file, those who lock it.
struct EmbeddedStoreTests {
  /// Runs a command two days ahead of the machine's clock; the boot-time clock with it, or not.
  private static func ahead(_ fakesBootTime: Bool) throws -> [String] {
    let libraries = try FileManager.default.contentsOfDirectory(atPath: "/usr/lib").map {
      "/usr/lib/\($0)/faketime/libfaketimeMT.so.1"
    }
    guard let library = libraries.first(where: FileManager.default.fileExists(atPath:)) else {
      throw TestFailure("libfaketime is not here: install Debian's package faketime")
    }
    // `env` goes before: libfaketime ends the first process that it is loaded into by itself.
    return [
      "env", "LD_PRELOAD=\(library)", "FAKETIME=+2d",
      "FAKETIME_DONT_FAKE_MONOTONIC=\(fakesBootTime ? "0" : "1")", "env",
    ]
  }

  @Test(arguments: [false, true])
  func `a start with a clock two days ahead forgets nothing, and neither does the next one`(
    fakesBootTime: Bool
  ) async throws {
    try await Rig.run { rig in
      let first = try await rig.order("yesterday")
      expectExecuted(first)
      try await rig.semel.kill()

      try await rig.semel.start(under: try Self.ahead(fakesBootTime))
      try await rig.semel.process.line(containing: "the clock is far ahead of the last change")
      expectReplayed(try await rig.order("yesterday"), of: first)
      let second = try await rig.order("today")
      expectExecuted(second)
      #expect(try await rig.semel.counter("semel_store_swept_total") == 0)
      try await rig.semel.kill()

      try await rig.semel.start()
      try await rig.semel.process.line(containing: "the clock is far behind the last change")
      expectReplayed(try await rig.order("yesterday"), of: first)
      expectReplayed(try await rig.order("today"), of: second)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a locked file delays nobody for long, and a refused claim is not run`() async throws {
    try await Rig.run(Configuration(storeMembers: ["timeout": "1s"])) { rig in
      let first = try await rig.order("before")
      let holder = try await rig.lockStore()
      let begin = ContinuousClock.now
      expectRefused(try await rig.order("k"), 503, "store_unavailable", retryable: true)
      // The file stays locked for a minute.
      #expect(ContinuousClock.now - begin < .seconds(10))
      #expect(rig.backend.runs(of: "k") == 0)
      expectReplayed(try await rig.order("before"), of: first)
      try await holder.kill()
      expectExecuted(try await rig.order("k") { $0.problem?.code != "store_unavailable" })
      #expect(rig.backend.requests.allSatisfy { $0.attempt == "1" })
      #expect(rig.backend.runs(of: "k") == 1)
    }
  }

  @Test(arguments: ["deleted", "emptied"])
  func `a lost database is not created again if it must be durable`(loss: String) async throws {
    var configuration = Configuration()
    configuration.storeMembers["require_durable"] = "true"
    try await Rig.run(configuration) { rig in
      expectExecuted(try await rig.order("k"))
      try await rig.semel.kill()
      let path = try #require(rig.storePath)
      for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
      if loss == "emptied" { try "".write(toFile: path, atomically: false, encoding: .utf8) }
      for _ in 0..<2 {
        let refused = try rig.semel.launch()
        #expect(try await refused.exit() == .code(1))
        #expect(
          refused.errors.contains("was deleted or emptied since Semel ran last")
            && refused.errors.contains("require_durable: false"), "\(refused.errors)")
        #expect(FileManager.default.fileExists(atPath: path) == (loss == "emptied"))
      }
      try rig.semel.configure(
        rig.text(of: rig.configuration).replacing("require_durable: true", with: "require_durable: false"))
      try await rig.semel.start()
      try await rig.semel.process.line(containing: "all recorded outcomes are gone")
      try await rig.semel.kill()
      try rig.semel.configure(rig.text(of: rig.configuration))
      try await rig.semel.start()
    }
  }

  @Test func `a deleted database lets nothing run, also with on_store_failure: open`() async throws {
    let configuration = Configuration(
      storeMembers: ["local_cache": "0B"], route: ["on_store_failure": "open"])
    try await Rig.run(configuration) { rig in
      expectExecuted(try await rig.order("before"))
      let path = try #require(rig.storePath)
      #expect(rename(path, path + ".away") == 0)
      for key in ["before", "k", "before", "k"] {
        expectRefused(try await rig.order(key), 503, "store_unavailable", retryable: true)
      }
      #expect(rig.backend.requests.count == 1)
      try await rig.semel.counter("semel_store_connections_up", becomes: 0)
      // The operator's act: the same file in its place again.
      #expect(rename(path + ".away", path) == 0)
      expectReplayed(try await rig.order("before") { $0.status == 201 }, 201)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a deleted database is noticed, and nothing is run without it`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("before"))
      let path = try #require(rig.storePath)
      #expect(rename(path, path + ".away") == 0)
      expectRefused(try await rig.order("k"), 503, "store_unavailable", retryable: true)
      try await rig.semel.process.line(containing: "was deleted or moved while Semel runs")
      #expect(rig.backend.runs(of: "k") == 0)
      #expect(!FileManager.default.fileExists(atPath: path))
      try await rig.semel.kill()
      // It reports what a restart cannot undo.
      try await rig.semel.start()
      try await rig.semel.process.line(containing: "all recorded outcomes are gone")
    }
  }

  @Test(arguments: ["closed", "open"])
  func `an emptied database is noticed, and nothing is run without it`(onFailure: String) async throws {
    let configuration = Configuration(
      storeMembers: ["local_cache": "0B"], route: ["on_store_failure": onFailure])
    try await Rig.run(configuration) { rig in
      expectExecuted(try await rig.order("before"))
      let path = try #require(rig.storePath)
      let content = try Data(contentsOf: URL(fileURLWithPath: path))
      #expect(!content.isEmpty)
      #expect(truncate(path, 0) == 0)
      for key in ["before", "k", "before", "k"] {
        expectRefused(try await rig.order(key), 503, "store_unavailable", retryable: true)
      }
      try await rig.semel.process.line(containing: "was emptied while Semel runs")
      #expect(rig.backend.requests.count == 1)
      // The operator's act: the same file has its pages again.
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try file.write(contentsOf: content)
      try file.close()
      expectReplayed(try await rig.order("before") { $0.status == 201 }, 201)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `claims that the store refuses share log entries`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      expectExecuted(try await rig.order("before"))
      try rig.redis?.command(["CONFIG", "SET", "maxmemory", "1"])
      for index in 0..<20 {
        expectRefused(try await rig.order("k\(index)"), 503, "store_unavailable", retryable: true)
      }
      try await rig.semel.process.line(containing: "store commands fail")
      let entries = rig.semel.process.output.split(separator: "\n").filter {
        $0.contains(#""level":"error""#) && $0.contains("store commands fail")
      }
      #expect(entries.count == 1)
      try rig.redis?.command(["CONFIG", "SET", "maxmemory", "0"])
    }
  }
}
