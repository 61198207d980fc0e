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

  @Test func `a record that cannot be read is listed in a large store once a delivery has met it`()
    async throws
  {
    try await Rig.run(Configuration(store: .redis, storeMembers: ["local_cache": "0B"])) { rig in
      try fill(rig)
      expectExecuted(try await rig.order("a"))
      let id = try #require(rig.backend.requests[0].requestID)
      try rig.redis?.command(["SET", "semel:{\(id)}", "9 of a later version"])
      expectRefused(try await rig.order("a"), 503, "store_unreadable", retryable: true)
      try await until(rig, lists: id)
      #expect(try await count(rig) == "in_flight 0\nunknown 0\nunreadable 1\n")
      try await rig.key(["forget", "--id=\(id)"])
      #expect(try await count(rig) == "in_flight 0\nunknown 0\nunreadable 0\n")
      #expect(try await !rig.key(["list", "--state", "unreadable"]).output.contains(id))
    }
  }

  /// Waits until a record is listed as unreadable, with the remark on what the list may lack.
  private func until(_ rig: Rig, lists id: String) async throws {
    while true {
      let list = try await rig.key(["list", "--state", "unreadable"])
      #expect(list.errors.contains("the list may lack"), "\(list.errors)")
      if list.output.contains(id) { return }
      try await Task.sleep(for: .milliseconds(50))
    }
  }
}

/// Open records of the embedded store, which has them in memory, over a kill.
struct EmbeddedOpenRecordTests {
  private func count(_ rig: Rig) async throws -> String { try await rig.key(["list", "--count"]).output }

  private func found(_ key: String, _ rig: Rig) async throws -> String {
    try await rig.key(["find", "--key", key, "--open"]).output
  }

  /// Loses the order `lost`, completes `done`, and kills Semel while `held` is in flight. Returns the ids of the first
  /// and the last one.
  private func leaveOpen(_ rig: Rig, _ gate: Gate) async throws -> (lost: String, held: String) {
    rig.backend.on("/v1/orders") { request in
      switch request["Idempotency-Key"] {
      case "lost": Reply(body: "{}", ending: .closedWithoutResponse)
      case "held": Reply(body: "{}", gate: gate)
      default: Reply(body: "{}")
      }
    }
    expectRefused(try await rig.order("lost"), 502, "outcome_unknown", retryable: false)
    expectExecuted(try await rig.order("done"))
    let client = try await RawClient(port: rig.semel.ports.proxy)
    try await client.send(Rig.orderText("held"))
    try await rig.backend.arrived(3)
    #expect(try await count(rig) == "in_flight 1\nunknown 1\nunreadable 0\n")
    try await rig.semel.kill()
    let requests = rig.backend.requests
    return (try #require(requests[0].requestID), try #require(requests[2].requestID))
  }

  @Test func `open records are listed, counted and found after a kill, until an operator ends them`()
    async throws
  {
    // So long that the lease of what was in flight ends after the first look.
    try await Rig.run(Configuration(route: ["on_unknown": "hold", "lease": "20s"])) { rig in
      let gate = Gate()
      defer { gate.open() }
      let (lost, held) = try await leaveOpen(rig, gate)
      try await rig.semel.start()
      #expect(try await count(rig) == "in_flight 1\nunknown 1\nunreadable 0\n")
      #expect(try await rig.key(["list", "--state", "in_flight"]).output.contains(held))
      #expect(try await rig.key(["list", "--state", "unknown"]).output.contains(lost))
      #expect(try await found("held", rig).contains(held))
      #expect(try await found("lost", rig).contains(lost))
      #expect(try await found("done", rig).contains("there is no such record"))
      // The lease of the process that died.
      while try await count(rig) != "in_flight 0\nunknown 2\nunreadable 0\n" {
        try await Task.sleep(for: .milliseconds(100))
      }
      let listed = try await rig.key(["list", "--state", "unknown"]).output
      #expect(listed.contains(held) && listed.contains(lost) && listed.contains("lease_lapsed"), "\(listed)")
      try await rig.semel.counter(
        "semel_open_records", label: #"state="unknown""#, becomes: 2, within: .seconds(40))
      try await rig.key(["forget", "--id=\(lost)"])
      try await rig.key(["resolve", "--applied", "--status", "201", "--id=\(held)"])
      #expect(try await count(rig) == "in_flight 0\nunknown 0\nunreadable 0\n")
      for key in ["lost", "held"] { #expect(try await found(key, rig).contains("there is no such record")) }
      expectReplayed(try await rig.order("held"), 201)
    }
  }

  @Test func `a damaged record is listed from a start on, and a damaged response once a delivery has met it`()
    async throws
  {
    try await Rig.run { rig in
      for key in ["record", "response"] { expectExecuted(try await rig.order(key)) }
      let ids = try rig.backend.requests.map { try #require($0.requestID) }
      try await rig.semel.kill()
      try await Python.runInline(
        """
        import base64, sqlite3, sys
        record, response = (base64.urlsafe_b64decode(text + "=") for text in sys.argv[2:])
        with sqlite3.connect(sys.argv[1]) as database:
          database.execute("UPDATE record SET format = 9 WHERE id = ?", (record,))
          database.execute("UPDATE response SET fields = 'none' WHERE number = (SELECT response FROM record WHERE id = ?)", (response,))
        """, [try #require(rig.storePath)] + ids)
      try await rig.semel.start()
      #expect(try await rig.key(["list", "--state", "unreadable"]).output.contains(ids[0]))
      for key in ["record", "response"] {
        expectRefused(try await rig.order(key), 503, "store_unreadable", retryable: true)
      }
      // Once the walk after the start has ended.
      while try await count(rig) != "in_flight 0\nunknown 0\nunreadable 2\n" {
        try await Task.sleep(for: .milliseconds(50))
      }
      let listed = try await rig.key(["list", "--state", "unreadable"]).output
      #expect(ids.allSatisfy { listed.contains($0) }, "\(listed)")
      for id in ids { try await rig.key(["forget", "--id=\(id)"]) }
      #expect(try await count(rig) == "in_flight 0\nunknown 0\nunreadable 0\n")
      expectExecuted(try await rig.order("record"))
    }
  }
}
