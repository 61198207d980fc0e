import TestSupport
import Testing

/// Open records in a Redis that is too large to be read whole for them.
struct OpenRecordTests {
  /// Fills the store with keys of others, from which on the index is used.
  private func fill(_ rig: Rig) throws {
    let script = "for i = 1, ARGV[1] do redis.call('SET', 'other:' .. i, '') end return redis.call('DBSIZE')"
    let size = try rig.redis?.command(["EVAL", script, "0", "10001"])
    #expect(size?.hasPrefix(":100") == true, "\(size ?? "no Redis")")
  }

  private func count(_ rig: Rig) async throws -> String { try await rig.key(["list", "--count"]).output }

  @Test func `an unknown outcome is listed, counted and found in a large store`() async throws {
    try await Rig.run(Configuration(store: .redis, route: ["on_unknown": "hold"])) { rig in
      try fill(rig)
      #expect(try await count(rig) == "in_flight 0\nunknown 0\nunreadable 0\n")
      rig.backend.on("/v1/orders") { request in
        Reply(body: "{}", ending: request.number == 1 ? .closedWithoutResponse : .whole)
      }
      expectRefused(try await rig.order("a"), 502, "outcome_unknown", retryable: false)
      expectExecuted(try await rig.order("b"))
      let id = try #require(rig.backend.requests[0].requestID)
      #expect(try await rig.key(["list", "--state", "unknown"]).output.contains(id))
      #expect(try await count(rig) == "in_flight 0\nunknown 1\nunreadable 0\n")
      let counts = try await rig.semel.admin.send("GET", "/v1/record-counts")
      #expect(counts.status == 200 && counts.text.contains(#""unknown":1"#), "\(counts.text)")
      let found = try await rig.key(["find", "--key", "a", "--open"]).output
      #expect(found.contains(id) && found.contains("searched: the open records"), "\(found)")
      // A record that has ended is not among them.
      let ended = try await rig.key(["find", "--key", "b", "--open"]).output
      #expect(ended.contains("there is no such record"), "\(ended)")
      #expect(try await rig.key(["find", "--key", "b"]).output.contains("completed"))
      try await rig.key(["resolve", "--not-applied", "--id", id])
      #expect(try await count(rig) == "in_flight 0\nunknown 0\nunreadable 0\n")
      #expect(try await !rig.key(["list"]).output.contains(id))
      let resolved = try await rig.key(["find", "--key", "a", "--open"]).output
      #expect(resolved.contains("there is no such record"), "\(resolved)")
    }
  }

  @Test func `a run is listed in a large store until it ends`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      try fill(rig)
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "{}", gate: gate) }
      async let order = rig.order("a")
      try await rig.backend.arrived(1)
      // It is in the index after one to two seconds.
      while try await !count(rig).hasPrefix("in_flight 1\n") { try await Task.sleep(for: .milliseconds(50)) }
      let id = try #require(rig.backend.requests[0].requestID)
      #expect(try await rig.key(["list", "--state", "in_flight"]).output.contains(id))
      gate.open()
      expectExecuted(try await order)
      #expect(try await !rig.key(["list"]).output.contains(id))
    }
  }

  @Test func `what a killed process held is found by the walk of another`() async throws {
    try await Rig.run(Configuration(store: .redis), within: .seconds(180)) { rig in
      try fill(rig)
      let other = try await rig.secondNode()
      let gate = Gate()
      defer { gate.open() }
      rig.backend.on("/v1/orders") { _ in Reply(body: "{}", gate: gate) }
      let client = try await RawClient(port: other.ports.proxy)
      try await client.send(Rig.orderText("a"))
      try await rig.backend.arrived(1)
      // Before it is in the index.
      try await other.kill()
      let id = try #require(rig.backend.requests[0].requestID)
      while try await !rig.key(["list"]).output.contains(id) { try await Task.sleep(for: .milliseconds(200)) }
    }
  }
}
