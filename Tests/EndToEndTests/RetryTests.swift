import TestSupport
import Testing

/// Retries on the client's behalf.
struct RetryTests {
  private static let few = "{max: 2, backoff: 1ms}"

  private static func configuration(
    _ retries: String = few, store: StoreKind = .embedded, upstream: [String: String] = [:],
    route: [String: String] = [:]
  ) -> Configuration {
    Configuration(
      store: store, upstream: upstream, route: route.merging(["retries": retries]) { own, _ in own })
  }

  @Test(arguments: StoreKind.allCases)
  func `a client gets the response of the attempt that succeeds`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store: store)) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(503), Reply(429), Reply(201, body: "made")])
      let first = try await rig.order("k")
      expectExecuted(first)
      #expect(first.text == "made")
      expectReplayed(try await rig.order("k"), of: first)
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2", "3"])
      #expect(Set(rig.backend.requests.map(\.requestID)).count == 1)
      #expect(rig.backend.requests.allSatisfy { $0.text == #"{"amount":1999}"# })
      try await rig.semel.counter("semel_client_retries_total", label: #"route="orders""#, becomes: 2)
      try await rig.semel.counter("semel_retries_total", label: #"after="released""#, becomes: 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `when the retries are spent, the client gets the last response and the key is free`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Self.configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { Reply($0.number > 3 ? 201 : 503, body: "run \($0.number)") }
      let first = try await rig.order("k")
      #expect(first.status == 503 && first.text == "run 3")
      #expect(first.idempotencyStatus == "not-stored")
      try await rig.semel.counter("semel_client_retries_stopped_total", label: #"by="max""#, becomes: 1)
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2", "3", "4"])
    }
  }

  @Test func `no retry follows a response of which the client has a part`() async throws {
    try await Rig.run(Self.configuration(route: ["max_response_body": "64KiB"])) { rig in
      rig.backend.on(
        "/v1/orders", inTurn: [Reply(503, [], content: .filler(300_000), framing: .length), Reply(201)])
      let first = try await rig.order("k")
      #expect(first.status == 503 && first.body.count == 300_000)
      #expect(rig.backend.requests.count == 1)
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
    }
  }

  @Test func `a record that only met 429 is gone after its retries, too`() async throws {
    try await Rig.run(Self.configuration()) { rig in
      rig.backend.on("/v1/orders") { Reply($0.number > 3 ? 201 : 429) }
      #expect(try await rig.order("k").status == 429)
      expectExecuted(try await rig.order("k", body: "{}"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2", "3", "1"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a rejection before a retry does not count towards max_attempts`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store: store, route: ["max_attempts": "2"])) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(429), Reply(503), Reply(201)])
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2", "3"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a backend that is not there is tried again`(store: StoreKind) async throws {
    let configuration = Self.configuration(
      "{max: 20, backoff: 50ms, max_backoff: 500ms}", store: store, upstream: ["connect_retries": "0"],
      route: ["wait_timeout": "60s"])
    try await Rig.run(configuration, backendIsUp: false) { rig in
      async let order = rig.order("k", within: .seconds(50))
      try await rig.semel.counter("semel_client_retries_total", isAtLeast: 1)
      try await rig.backend.start()
      expectExecuted(try await order)
      #expect(rig.backend.requests.count == 1)
      #expect((rig.backend.requests.first?.attempt).flatMap { Int($0) } ?? 0 >= 2)
    }
  }

  @Test(
    arguments: StoreKind.allCases,
    [Reply.unanswered, Reply(502), Reply(504), Reply(503, body: "0123456789", ending: .reset(after: 5))])
  func `an unknown outcome is never repeated`(store: StoreKind, reply: Reply) async throws {
    try await Rig.run(Self.configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { _ in reply }
      let first = try await rig.order("k")
      #expect(first.idempotencyStatus == "unknown" || first.problem?.code == "outcome_unknown")
      expectRefused(try await rig.order("k"), 409, "outcome_unknown", retryable: false)
      #expect(rig.backend.log.value.begun == 1)
    }
  }

  @Test func `Retry-After is obeyed, and not waited for beyond the time that a client waits`() async throws {
    try await Rig.run(Self.configuration(route: ["wait_timeout": "8s"])) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(503, [("Retry-After", "1")]), Reply(201)])
      let start = ContinuousClock.now
      expectExecuted(try await rig.order("k"))
      #expect(ContinuousClock.now - start >= .seconds(1))
      rig.backend.on("/v1/orders") { _ in Reply(503, [("Retry-After", "3600")]) }
      let late = try await rig.order("late")
      #expect(late.status == 503 && late["Retry-After"] == "3600")
      #expect(rig.backend.runs(of: "late") == 1)
      try await rig.semel.counter("semel_client_retries_stopped_total", label: #"by="time""#, becomes: 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `the record stays claimed before the retry, and is free once the client is gone`(store: StoreKind)
    async throws
  {
    let configuration = Self.configuration(store: store, route: ["lease": "4s", "wait_timeout": "60s"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(503, [("Retry-After", "55")]), Reply(201)])
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k"))
      // Longer than the lease itself.
      try await rig.semel.counter("semel_leases_renewed_total", isAtLeast: 4)
      let duplicate = try await rig.order("k", [("Prefer", "wait=0")])
      expectRefused(duplicate, 409, "in_flight", retryable: true)
      #expect(rig.backend.requests.count == 1)
      try await client.close()
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
      #expect(try await rig.semel.counter("semel_client_retries_total") == 0)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a shutdown leaves a record free that waits for its retry`(store: StoreKind) async throws {
    var configuration = Self.configuration(store: store, route: ["lease": "60s", "wait_timeout": "60s"])
    configuration.top["shutdown_grace"] = "5s"
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(503, [("Retry-After", "55")]), Reply(201)])
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      rig.semel.terminate()
      try await rig.semel.process.exit(within: .seconds(20))
      try await rig.semel.start()
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `duplicates wait for the retry, and the intent runs to one outcome`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store: store)) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(503, [("Retry-After", "1")]), Reply(201, body: "made")])
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      async let second = rig.order("k")
      async let third = rig.order("k")
      let all = [try await first, try await second, try await third]
      #expect(all.allSatisfy { $0.status == 201 && $0.text == "made" })
      #expect(all.count { $0.idempotencyStatus == "executed" } == 1)
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
    }
  }

  /// All first attempts end at once in 503, and all retries wait at the backend, where they are counted.
  @Test(arguments: StoreKind.allCases)
  func `under an outage the retries stay within the budget`(store: StoreKind) async throws {
    let clients = 40
    let configuration = Self.configuration(
      "{max: 1, backoff: 1ms, budget: 20%}", store: store, upstream: ["max_connections": "200"],
      route: ["wait_timeout": "60s"])
    try await Rig.run(configuration) { rig in
      let (outage, recovery) = (Gate(), Gate())
      rig.backend.on("/v1/orders") { request in
        request.attempt == "1" ? Reply(503, gate: outage) : Reply(201, gate: recovery)
      }
      try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 1...clients { group.addTask { try await rig.order("k\(number)").status } }
        try await rig.backend.arrived(clients)
        outage.open()
        // Each of the others has its 503 while the retries are still held.
        let stopped = #"by="budget""#
        let refused = clients * 8 / 10
        try await rig.semel.counter("semel_client_retries_stopped_total", label: stopped, isAtLeast: refused)
        recovery.open()
        var statuses: [Int] = []
        for try await status in group { statuses.append(status) }
        let retries = rig.backend.requests.count { $0.attempt == "2" }
        #expect((3...clients * 2 / 10).contains(retries), "\(retries) retries")
        #expect(statuses.count { $0 == 201 } == retries)
        #expect(statuses.count { $0 == 503 } == clients - retries)
      }
    }
  }
}
