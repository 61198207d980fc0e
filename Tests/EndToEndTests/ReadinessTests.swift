import Foundation
import TestSupport
import Testing

/// The readiness that Semel reports.
struct ReadinessTests {
  private func probe(_ rig: Rig) async throws -> ReceivedResponse {
    try await rig.semel.admin.send("GET", "/readyz")
  }

  /// Not ready for this reason, alive, and no protected request runs.
  private func expectUnready(_ rig: Rig, _ reason: String) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    var response = try await probe(rig)
    while !response.text.contains(reason), ContinuousClock.now < deadline { response = try await probe(rig) }
    #expect(response.status == 503 && response.text.hasPrefix("not ready: the store is "), "\(response.text)")
    #expect(response.text.contains(reason), "\(response.text)")
    #expect(await rig.semel.status(of: "/livez") == 200)
    expectRefused(try await rig.order("k"), 503, "store_unavailable", retryable: true)
    #expect(rig.backend.requests.isEmpty)
  }

  private func expectMended(_ rig: Rig) async throws {
    try await rig.semel.page("/readyz", becomes: 200)
    expectExecuted(try await rig.order("k"))
  }

  @Test(arguments: StoreKind.allCases)
  func `a probe names configuration, store and upstreams`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let text = try await probe(rig).text
      #expect(text.hasPrefix("ready\nconfiguration "), "\(text)")
      let place = rig.storePath.map { "embedded \($0)" } ?? "redis 127.0.0.1:\(rig.redis?.port ?? 0)"
      #expect(
        text.contains("\nstore \(place): serving\n") && text.hasSuffix("\nupstream orders\n"), "\(text)")
    }
  }

  @Test func `a backend that is not reached is shown until it is`() async throws {
    try await Rig.run(backendIsUp: false) { rig in
      #expect(try await probe(rig).text.hasSuffix("\nupstream orders\n"))
      expectRefused(try await rig.order("k"), 502, "upstream_unreachable", retryable: true)
      let response = try await probe(rig)
      #expect(response.status == 200, "\(response.text)")
      let line = try #require(response.text.split(separator: "\n").last)
      #expect(
        line.hasPrefix("upstream orders: not reached at 20") && line.hasSuffix("Connection refused"),
        "\(line)")
      try await rig.backend.start()
      expectExecuted(try await rig.order("k"))
      #expect(try await probe(rig).text.hasSuffix("\nupstream orders\n"))
    }
  }

  @Test func `a wrong password keeps the process from being ready until it is corrected`() async throws {
    let configuration = Configuration(store: .redis, redisUser: "semel:hunter2@")
    try await Rig.run(configuration, becomesReady: false) { rig in
      try await expectUnready(rig, "Redis knows no such user and password")
      let text = try await probe(rig).text
      #expect(!text.contains("hunter2"))
      try rig.redis?.command(["ACL", "SETUSER", "semel", "on", ">hunter2", "~*", "&*", "+@all"])
      try await expectMended(rig)
    }
  }

  @Test func `a missing Redis keeps the process from being ready until it is there`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      try await rig.semel.kill()
      rig.redis?.kill()
      let process = try rig.semel.launch()
      try await process.line(containing: "cannot be reached: Connection refused\"")
      try await process.line(containing: #""message":"listening""#)
      try await rig.semel.page("/livez", becomes: 200)
      try await expectUnready(rig, "cannot be reached: Connection refused")
      try await rig.redis?.start()
      try await expectMended(rig)
    }
  }

  @Test func `a Redis that may lose records is refused and reported with require_durable`() async throws {
    let configuration = Configuration(store: .redis, storeMembers: ["require_durable": "true"])
    try await Rig.run(configuration, becomesReady: false) { rig in
      try await expectUnready(
        rig, "refused: require_durable is set, and this Redis may lose records: appendonly")
      try await rig.semel.counter("semel_store_connections_up", becomes: 0)
      let process = rig.semel.process
      try await process.line(containing: "Redis is refused, and no protected request runs: require_durable")
      try rig.redis?.command(["CLIENT", "KILL", "TYPE", "normal"])
      try await process.line(containing: "no connection to Redis")
      try await expectUnready(rig, "refused: require_durable is set")
      #expect(!process.output.contains("\"Redis is back\""))
      try rig.redis?.command(["CONFIG", "SET", "appendonly", "yes"])
      try rig.redis?.command(["CLIENT", "KILL", "TYPE", "normal"])
      try await expectMended(rig)
    }
  }

  /// Waits until a line of the probe has this text.
  private func line(_ rig: Rig, containing text: String) async throws -> ReceivedResponse {
    let deadline = ContinuousClock.now + .seconds(20)
    while true {
      let response = try await probe(rig)
      if response.text.contains(text) { return response }
      guard ContinuousClock.now < deadline else { throw TestFailure("no \(text) in \(response.text)") }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  @Test(arguments: [("started", 200), ("store", 503)])
  func `a full Redis is shown as failing while it replays`(rule: String, status: Int) async throws {
    try await Rig.run(Configuration(store: .redis, top: ["readiness": rule])) { rig in
      expectExecuted(try await rig.order("before"))
      try rig.redis?.command(["CONFIG", "SET", "maxmemory", "1"])
      let full = try await line(rig, containing: ": failing: Redis has no memory left")
      #expect(full.status == status, "\(full.text)")
      try await rig.semel.process.line(containing: "Redis takes no changes")
      expectRefused(try await rig.order("k"), 503, "store_unavailable", retryable: true)
      expectReplayed(try await rig.order("before"), 201)
      // A new connection meets the same.
      try rig.redis?.command(["CLIENT", "KILL", "TYPE", "normal"])
      try await rig.semel.process.line(containing: "no connection to Redis")
      #expect(try await line(rig, containing: ": failing: Redis has no memory left").status == status)
      try rig.redis?.command(["CONFIG", "SET", "maxmemory", "0"])
      #expect(try await line(rig, containing: ": serving\n").status == 200)
      try await rig.semel.process.line(containing: "Redis takes changes again")
      expectExecuted(try await rig.order("k"))
    }
  }

  @Test func `a password file that is gone is named, and no login without it is tried`() async throws {
    let directory = TemporaryDirectory()
    let file = directory.file("password")
    try "word\n".write(toFile: file, atomically: true, encoding: .utf8)
    let configuration = Configuration(
      store: .redis, storeMembers: ["username": "semel", "password_file": file],
      redisArguments: ["--user", "semel", "on", ">word", "~*", "&*", "+@all"])
    try await Rig.run(configuration) { rig in
      expectExecuted(try await rig.order("before"))
      try FileManager.default.removeItem(atPath: file)
      try rig.redis?.command(["CLIENT", "KILL", "USER", "semel"])
      _ = try await line(
        rig, containing: ": failing: the file \(file) of store.password_file does not exist")
      expectRefused(try await rig.order("k"), 503, "store_unavailable", retryable: true)
      try "word\n".write(toFile: file, atomically: true, encoding: .utf8)
      _ = try await line(rig, containing: ": serving\n")
      expectExecuted(try await rig.order("k"))
    }
  }

  @Test(arguments: [("started", 200), ("store", 503)])
  func `a store that fails later affects readiness if configured`(rule: String, status: Int)
    async throws
  {
    try await Rig.run(Configuration(store: .redis, top: ["readiness": rule])) { rig in
      rig.redis?.kill()
      let deadline = ContinuousClock.now + .seconds(20)
      var response = try await probe(rig)
      while !response.text.contains("failing: "), ContinuousClock.now < deadline {
        response = try await probe(rig)
      }
      #expect(
        response.text.contains("store redis 127.0.0.1:\(rig.redis?.port ?? 0): failing: "), "\(response.text)"
      )
      #expect(response.status == status)
      try await rig.redis?.start()
      try await rig.semel.page("/readyz", becomes: 200)
    }
  }
}
