import TestSupport
import Testing

/// Deliveries that come while the first is under way.
struct DuplicateTests {
  @Test(arguments: StoreKind.allCases)
  func `a duplicate waits for the first one's outcome`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: #"{"order":1}"#, gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let waiting = try await RawClient(port: rig.semel.ports.proxy)
      try await waiting.send(Rig.orderText("k"))
      // One that gives up by itself comes after the other: by its end the other has been waiting.
      let impatient = try await rig.order("k", [("Prefer", "wait=1")])
      expectRefused(impatient, 409, "in_flight", retryable: true)
      expectRetryAfter(impatient)
      #expect(waiting.inbox.value.total == 0)
      gate.open()
      let executed = try await first
      expectExecuted(executed)
      expectReplayed(try await waiting.response(), of: executed)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `beside respond-async a wait is the backend's, which gets it`() async throws {
    try await Rig.run(Configuration(route: ["duplicates": "reject"])) { rig in
      let gate = Gate()
      let preference = ("Prefer", "respond-async, wait=20")
      rig.backend.on("/v1/orders") { _ in Reply(202, gate: gate) }
      async let first = rig.order("k", [preference])
      let request = try await rig.backend.arrived(1)[0]
      #expect(request["Prefer"] == "respond-async, wait=20")
      // It does not wait, as its own preference alone would let it.
      expectRefused(try await rig.order("k", [preference]), 409, "in_flight", retryable: true)
      gate.open()
      let executed = try await first
      expectReplayed(try await rig.order("k", [preference]), of: executed)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `many duplicates at once run once`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { Reply(body: #"{"order":\#($0.number)}"#, delay: .milliseconds(200)) }
      let responses = try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for _ in 0..<40 { group.addTask { try await rig.order("k") } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(responses.count { $0.idempotencyStatus == "executed" } == 1)
      #expect(responses.count { $0.idempotencyStatus == "replayed" } == 39)
      #expect(Set(responses.map(\.text)) == [#"{"order":1}"#])
      #expect(rig.backend.requests.count == 1)
    }
  }

  /// With every reason to take over at once, were the lease let lapse.
  @Test(arguments: StoreKind.allCases)
  func `a backend that takes longer than the lease does not lose its claim`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, upstream: ["settle": "0s"], route: ["lease": "4s", "on_unknown": "retry"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { Reply(body: #"{"order":\#($0.number)}"#, gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      // Together they wait for three leases.
      for _ in 0..<2 {
        expectRefused(try await rig.order("k", [("Prefer", "wait=6")]), 409, "in_flight", retryable: true)
      }
      gate.open()
      expectReplayed(try await rig.order("k"), of: try await first)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a route may reject duplicates at once`() async throws {
    try await Rig.run(Configuration(route: ["duplicates": "reject"])) { rig in
      try await expectRejected(rig, [])
      try await expectRejected(rig, [("Prefer", "wait=0")])
    }
  }

  @Test func `a client may choose not to wait`() async throws {
    try await Rig.run { rig in
      try await expectRejected(rig, [("Prefer", "wait=0")])
      try await expectRejected(rig, [("Prefer", "respond-async, wait=0")])
      try await expectRejected(rig, [("Prefer", #"wait = "0";strict"#)])
    }
  }

  private func expectRejected(_ rig: Rig, _ fields: [(String, String)]) async throws {
    let gate = Gate()
    let key = "k\(rig.backend.requests.count)"
    rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
    async let first = rig.order(key)
    try await rig.backend.log.until("the first delivery") {
      $0.requests.contains { $0["Idempotency-Key"] == key } ? () : nil
    }
    let rejected = try await rig.order(key, fields)
    expectRefused(rejected, 409, "in_flight", retryable: true)
    expectRetryAfter(rejected)
    gate.open()
    expectExecuted(try await first)
    #expect(rig.backend.runs(of: key) == 1)
  }

  @Test func `waiting ends at the route's time-out, whatever the client prefers`() async throws {
    try await Rig.run(Configuration(route: ["wait_timeout": "500ms"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      for fields in [[], [("Prefer", "wait=60")]] {
        let start = ContinuousClock.now
        expectRefused(try await rig.order("k", fields), 409, "in_flight", retryable: true)
        #expect(ContinuousClock.now - start >= .milliseconds(450))
        #expect(ContinuousClock.now - start < .seconds(8))
      }
      gate.open()
      expectExecuted(try await first)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `at most max_waiters duplicates wait`() async throws {
    try await Rig.run(Configuration(route: ["max_waiters": "2"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let rejected = Watched(0)
      let responses = try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for _ in 0..<5 {
          group.addTask {
            let response = try await rig.order("k")
            if response.status == 409 { rejected.withValue { $0 += 1 } }
            return response
          }
        }
        try await rejected.until("three rejections") { $0 == 3 ? () : nil }
        gate.open()
        return try await group.reduce(into: []) { $0.append($1) }
      }
      expectExecuted(try await first)
      #expect(responses.count { $0.idempotencyStatus == "replayed" } == 2)
      #expect(responses.count { $0.problem?.code == "in_flight" } == 3)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `one client's waiting duplicates leave room for others`() async throws {
    let configuration = Configuration(
      top: ["limits": "{max_in_flight: 16}", "trusted_proxies": "[127.0.0.1]"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("k", [("X-Forwarded-For", "203.0.113.1")])
      try await rig.backend.arrived(1)
      try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for _ in 0..<4 {
          group.addTask { try await rig.order("k", [("X-Forwarded-For", "203.0.113.1")]) }
        }
        try await rig.semel.counter("semel_waiting_requests", becomes: 4)
        let response = try await rig.order("k", [("X-Forwarded-For", "203.0.113.1")])
        expectRefused(response, 409, "in_flight", retryable: true)
        group.addTask { try await rig.order("k", [("X-Forwarded-For", "203.0.113.2")]) }
        try await rig.semel.counter("semel_waiting_requests", becomes: 5)
        gate.open()
        for try await response in group { #expect(response.idempotencyStatus == "replayed") }
      }
      expectExecuted(try await first)
      #expect(rig.backend.requests.count == 1)
      // Each has given its place back.
      let second = try await rig.order("k", [("X-Forwarded-For", "203.0.113.1")])
      #expect(second.idempotencyStatus == "replayed")
    }
  }

  /// A client that hangs up cannot be told from one that has closed its sending side alone and still reads: its place
  /// is free when its time is over.
  @Test func `a waiting duplicate that hangs up makes room for another`() async throws {
    try await Rig.run(Configuration(route: ["max_waiters": "1", "wait_timeout": "10s"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let waiting = try await RawClient(port: rig.semel.ports.proxy)
      try await waiting.send(Rig.orderText("k"))
      try await expectWaits(rig, false)
      try await waiting.close()
      try await expectWaits(rig, true)
      gate.open()
      expectExecuted(try await first)
    }
  }

  /// Expects that duplicates wait, or are rejected at once, before long.
  private func expectWaits(_ rig: Rig, _ expected: Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(30)
    while ContinuousClock.now < deadline {
      let start = ContinuousClock.now
      expectRefused(try await rig.order("k", [("Prefer", "wait=1")]), 409, "in_flight", retryable: true)
      if (ContinuousClock.now - start >= .milliseconds(950)) == expected { return }
    }
    Issue.record("no duplicate \(expected ? "waits" : "is rejected")")
  }

  @Test(arguments: StoreKind.allCases)
  func `after a release one waiting duplicate runs, and the others get its response`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders", inTurn: [Reply(503, gate: gate), Reply(201, body: "second")])
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let responses = try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for _ in 0..<3 { group.addTask { try await rig.order("k") } }
        // All three are in before this one gives up.
        expectRefused(try await rig.order("k", [("Prefer", "wait=1")]), 409, "in_flight", retryable: true)
        gate.open()
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(try await first.status == 503)
      #expect(responses.count { $0.idempotencyStatus == "executed" } == 1)
      #expect(responses.count { $0.idempotencyStatus == "replayed" } == 2)
      #expect(responses.allSatisfy { $0.text == "second" })
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a waiter whose client is gone leaves its place to others`(store: StoreKind) async throws {
    let configuration = Configuration(store: store, route: ["wait_timeout": "60s", "max_waiters": "1"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let gone = try await RawClient(port: rig.semel.ports.proxy)
      try await gone.send(Rig.orderText("k"))
      try await rig.semel.counter("semel_waiting_requests", becomes: 1)
      try await gone.reset()
      try await rig.semel.counter("semel_waiting_requests", becomes: 0)
      async let second = rig.order("k")
      try await rig.semel.counter("semel_waiting_requests", becomes: 1)
      gate.open()
      let executed = try await first
      expectReplayed(try await second, of: executed)
    }
  }
}
