import TestSupport
import Testing

/// A route with `on_store_failure: open` while the store is away: what its own process knows does not run again.
struct OutageTests {
  private static let other = #"{"amount":2}"#

  /// Without the local cache: what it may replay is not refused.
  private static func configuration(
    _ outage: StoreOutage, route: [String: String] = [:]
  ) -> Configuration {
    Configuration(
      store: outage.store, storeMembers: ["timeout": "1500ms", "local_cache": "0B"],
      route: ["on_store_failure": "open", "duplicates": "reject"].merging(route) { _, own in own },
      isAppendOnly: true)
  }

  private func expectRefusedAsKnown(_ rig: Rig, sourceLocation: SourceLocation = #_sourceLocation)
    async throws
  {
    expectRefused(
      try await rig.order("k"), 503, "store_unavailable", retryable: true, sourceLocation: sourceLocation)
    expectRefused(
      try await rig.order("k", body: Self.other), 409, "payload_mismatch", retryable: false,
      sourceLocation: sourceLocation)
  }

  private static func isReached(_ response: ReceivedResponse) -> Bool {
    response.problem?.code != "store_unavailable" && response.idempotencyStatus != "unprotected"
  }

  @Test(arguments: StoreOutage.allCases)
  func `a record that is in flight here or completed does not run again`(outage: StoreOutage) async throws {
    try await Rig.run(Self.configuration(outage)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let end = try await outage.begin(rig)
      try await expectRefusedAsKnown(rig)
      gate.open()
      #expect(try await first.text == "once")
      // Completed, although the store could not record it.
      try await expectRefusedAsKnown(rig)
      // A key that was never seen runs.
      #expect(try await rig.order("new").idempotencyStatus == "unprotected")
      #expect(rig.backend.runs(of: "k") == 1)
      try await end()
      expectReplayed(try await rig.order("k") { $0.status == 201 }, of: try await first)
      expectExecuted(try await rig.order("new", until: Self.isReached))
      #expect(rig.backend.runs(of: "k") == 1)
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `a request that is in progress when a reload opens its route does not run again`(outage: StoreOutage)
    async throws
  {
    let closed = Self.configuration(outage, route: ["on_store_failure": "closed"])
    try await Rig.run(closed) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      try await rig.reload { $0.route["on_store_failure"] = "open" }
      let end = try await outage.begin(rig)
      try await expectRefusedAsKnown(rig)
      gate.open()
      #expect(try await first.text == "once")
      // Completed, although the store could not record it.
      try await expectRefusedAsKnown(rig)
      #expect(rig.backend.runs(of: "k") == 1)
      try await end()
      expectReplayed(try await rig.order("k") { $0.status == 201 }, of: try await first)
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `a record that was completed or lost before the store failed does not run again`(outage: StoreOutage)
    async throws
  {
    try await Rig.run(Self.configuration(outage)) { rig in
      expectExecuted(try await rig.order("k"))
      rig.backend.on("/v1/lost") { _ in .unanswered }
      let lost = try await rig.order("lost", path: "/v1/lost")
      expectRefused(lost, 502, "outcome_unknown", retryable: false)
      let end = try await outage.begin(rig)
      try await expectRefusedAsKnown(rig)
      let again = try await rig.order("lost", path: "/v1/lost")
      expectRefused(again, 503, "store_unavailable", retryable: true)
      try await end()
      expectReplayed(try await rig.order("k") { $0.status == 201 }, 201)
      var after = try await rig.order("lost", path: "/v1/lost")
      while after.problem?.code == "store_unavailable" {
        after = try await rig.order("lost", path: "/v1/lost")
      }
      expectRefused(after, 409, "outcome_unknown", retryable: false)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreOutage.allCases, [false, true])
  func `a run that was lost without a record does not run again, whatever a reload says`(
    outage: StoreOutage, isReloaded: Bool
  ) async throws {
    try await Rig.run(Self.configuration(outage, route: ["lease": "3s"])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      let end = try await outage.begin(rig)
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: false)
      try await expectRefusedAsKnown(rig)
      if isReloaded {
        try await rig.reload { $0.route["on_store_failure"] = "closed" }
        // Of a closed route's deliveries the store alone decides on the payload.
        expectRefused(try await rig.order("k"), 503, "store_unavailable", retryable: true)
      }
      try await end()
      let lost = try await rig.order("k") { $0.problem?.code != "store_unavailable" }
      expectRefused(lost, 409, "outcome_unknown", retryable: true)
      // Longer than the lease, and than any claim of it was to be given back.
      let deadline = ContinuousClock.now + .seconds(5)
      while ContinuousClock.now < deadline {
        let again = try await rig.order("k")
        #expect(again.status == 409 || again.status == 503, "\(again)")
      }
      expectRefused(
        try await rig.order("k", body: Self.other), 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.runs(of: "k") == 1)
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `outcomes that wait for the store are kept in bounded memory`(outage: StoreOutage) async throws {
    let configuration = Configuration(
      store: outage.store, top: ["limits": "{body_memory: 1MiB}", "workers": "1"],
      storeMembers: ["timeout": "1500ms", "local_cache": "0B"], route: ["lease": "30s"], isAppendOnly: true)
    try await Rig.run(configuration) { rig in
      let (gate, size) = (Gate(), 36 << 10)
      rig.backend.on("/v1/orders") { _ in
        var reply = Reply(201, [("Location", "/v1/orders/1")], content: .filler(size))
        reply.gate = gate
        return reply
      }
      let callers = (0..<6).map { "Bearer \($0)" }
      try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for caller in callers { group.addTask { try await rig.order("k", caller: caller) } }
        try await rig.backend.arrived(callers.count)
        let end = try await outage.begin(rig)
        gate.open()
        // Whatever becomes of its record, each client gets its response.
        for try await response in group { #expect(response.status == 201 && response.body.count == size) }
        // An eighth of the memory.
        let held = try await rig.semel.counter("semel_body_bytes")
        #expect(held > 3 * size && held <= 128 << 10)
        try await end()
      }
      var codes: [String?] = []
      for caller in callers {
        var response = try await rig.order("k", caller: caller)
        while ["store_unavailable", "in_flight"].contains(response.problem?.code) {
          response = try await rig.order("k", caller: caller)
        }
        if response.status == 201 { expectReplayed(response, 201) }
        codes.append(response.problem?.code)
      }
      // A Redis that stalls still runs what waited in its socket, with the whole response.
      let whole = codes.count { $0 == nil }
      #expect(outage == .redisStalled ? whole >= 3 : whole == 3)
      #expect(codes.count { $0 == "response_not_kept" } == callers.count - whole)
      #expect(rig.backend.requests.count == callers.count)
      try await rig.semel.counter("semel_body_bytes", becomes: 0)
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `one delivery of an unknown key runs at a time`(outage: StoreOutage) async throws {
    try await Rig.run(Self.configuration(outage)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "open", gate: gate) }
      let end = try await outage.begin(rig)
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      try await expectRefusedAsKnown(rig)
      gate.open()
      #expect(try await first.idempotencyStatus == "unprotected")
      // It ended without a record.
      #expect(try await rig.order("k").idempotencyStatus == "unprotected")
      #expect(rig.backend.runs(of: "k") == 2)
      try await end()
      expectExecuted(try await rig.order("k", until: Self.isReached))
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `a run without the store excludes others even once the store is back`(outage: StoreOutage)
    async throws
  {
    try await Rig.run(Self.configuration(outage)) { rig in
      let gate = holdOrder(at: rig)
      let end = try await outage.begin(rig)
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      try await end()
      for number in 0..<4 { expectExecuted(try await rig.order("other\(number)", until: Self.isReached)) }
      for _ in 0..<4 {
        // In flight: until the claim that was refused is given back.
        let problem = try await rig.order("k").problem
        #expect(problem?.retryable == true && ["store_unavailable", "in_flight"].contains(problem?.code))
      }
      #expect(rig.backend.runs(of: "k") == 1)
      gate.open()
      #expect(try await first.idempotencyStatus == "unprotected")
      // Not by a loop that has yet to find the store again: it would run it without a record once more.
      expectExecuted(try await rig.order("k") { $0.status == 201 && $0.idempotencyStatus != "unprotected" })
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `a run without the store whose response was lost is not repeated`(outage: StoreOutage) async throws {
    try await Rig.run(Self.configuration(outage)) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      let end = try await outage.begin(rig)
      #expect(try await rig.order("k").status == 502)
      try await expectRefusedAsKnown(rig)
      #expect(rig.backend.requests.count == 1)
      try await end()
    }
  }

  /// Lets the backend hold its response to key `k` until the gate opens.
  private func holdOrder(at rig: Rig) -> Gate {
    let gate = Gate()
    rig.backend.on("/v1/orders") { request in
      Reply(body: "open", gate: request["Idempotency-Key"] == "k" ? gate : nil)
    }
    return gate
  }

  /// The backend's way to leave a request that it has run.
  enum Loss: String, CaseIterable, Sendable {
    case unanswered, cut, timedOut, badGateway

    func reply(_ gate: Gate) -> Reply {
      switch self {
      case .unanswered: .unanswered
      case .cut: Reply(201, body: "0123456789", ending: .cut(after: 5))
      case .timedOut: Reply(gate: gate)
      case .badGateway: Reply(502)
      }
    }
  }

  @Test(arguments: StoreOutage.allCases, Loss.allCases)
  func `a run without the store whose response was lost is unknown once the store is back`(
    outage: StoreOutage, loss: Loss
  ) async throws {
    var configuration = Self.configuration(outage)
    configuration.upstream = ["response_timeout": "500ms", "settle": "1s"]
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in loss.reply(gate) }
      let end = try await outage.begin(rig)
      _ = try? await rig.order("k")
      try await expectRefusedAsKnown(rig)
      try await end()
      let other = try await rig.order("k", body: Self.other)
      #expect(["payload_mismatch", "store_unavailable"].contains(other.problem?.code))
      let held = try await rig.order("k") { $0.problem?.code == "outcome_unknown" }
      #expect(held.status == 409)
      // The store knows it now, and another payload is compared by the store.
      let settled = try await rig.order("k") { $0.problem?.retryable == false }
      expectRefused(settled, 409, "outcome_unknown", retryable: false)
      let mismatch = try await rig.order("k", body: Self.other)
      expectRefused(mismatch, 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.count == 1)
      gate.open()
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `with on_unknown: retry, a run that was lost without the store runs again after settle`(
    outage: StoreOutage
  ) async throws {
    var configuration = Self.configuration(outage, route: ["on_unknown": "retry"])
    configuration.upstream = ["settle": "10s"]
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders", inTurn: [.unanswered, Reply(201, body: "second")])
      let end = try await outage.begin(rig)
      #expect(try await rig.order("k").status == 502)
      try await end()
      let start = ContinuousClock.now
      let held = try await rig.order("k") { $0.problem?.code == "outcome_unknown" }
      expectRefused(held, 409, "outcome_unknown", retryable: true)
      #expect(rig.backend.requests.count == 1)
      let second = try await rig.order("k") { $0.status == 201 }
      expectExecuted(second)
      #expect(ContinuousClock.now - start >= .milliseconds(900))
      #expect(rig.backend.requests.map(\.attempt) == [nil, "2"])
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `a released record runs again with its payload only`(outage: StoreOutage) async throws {
    try await Rig.run(Self.configuration(outage)) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(503), Reply(201)])
      #expect(try await rig.order("k").idempotencyStatus == "not-stored")
      let end = try await outage.begin(rig)
      let other = try await rig.order("k", body: Self.other)
      expectRefused(other, 409, "payload_mismatch", retryable: false)
      #expect(try await rig.order("k").idempotencyStatus == "unprotected")
      try await end()
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `a forgotten key is free to run`(outage: StoreOutage) async throws {
    try await Rig.run(Self.configuration(outage)) { rig in
      expectExecuted(try await rig.order("k"))
      let forget = try ManagedProcess([
        SemelProcess.binary, "key", "forget", "--route", "orders", "--key", "k", "--caller",
        "header:Authorization=Bearer alice", "--path", "/v1/orders", "--method", "POST", "--host",
        "orders.example", "--admin", "http://127.0.0.1:\(rig.semel.ports.admin)",
      ])
      #expect(try await forget.exit() == .code(0))
      let end = try await outage.begin(rig)
      #expect(try await rig.order("k").idempotencyStatus == "unprotected")
      try await end()
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `an operator's change without effect frees no key that runs without the store`(outage: StoreOutage)
    async throws
  {
    try await Rig.run(Self.configuration(outage)) { rig in
      let gate = holdOrder(at: rig)
      let end = try await outage.begin(rig)
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let resolve = { () async throws in
        let process = try ManagedProcess([
          SemelProcess.binary, "key", "resolve", "--not-applied", "--route", "orders", "--key", "k",
          "--caller",
          "header:Authorization=Bearer alice", "--path", "/v1/orders", "--method", "POST", "--host",
          "orders.example", "--admin", "http://127.0.0.1:\(rig.semel.ports.admin)",
        ])
        #expect(try await process.exit() != .code(0))
      }
      try await resolve()
      try await expectRefusedAsKnown(rig)
      try await end()
      expectExecuted(try await rig.order("other", until: Self.isReached))
      try await resolve()
      let problem = try await rig.order("k").problem
      #expect(problem?.retryable == true && ["store_unavailable", "in_flight"].contains(problem?.code))
      #expect(rig.backend.runs(of: "k") == 1)
      gate.open()
      #expect(try await first.idempotencyStatus == "unprotected")
    }
  }

  @Test func `a record that another node has in flight does not run here`() async throws {
    try await Rig.run(Self.configuration(.redisStopped)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let second = try await rig.secondNode()
      expectRefused(try await rig.order("k", at: second), 409, "in_flight", retryable: true)
      let end = try await StoreOutage.redisStopped.begin(rig)
      let refused = try await rig.order("k", at: second)
      expectRefused(refused, 503, "store_unavailable", retryable: true)
      gate.open()
      _ = try await first
      try await end()
      #expect(rig.backend.requests.count == 1)
      try await second.kill()
    }
  }
}
