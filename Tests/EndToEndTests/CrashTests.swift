import Glibc
import TestSupport
import Testing

/// Parts that die at the worst moment.
struct CrashTests {
  @Test func `what was logged before Semel crashed is written, whatever the log's level`() async throws {
    let log = "{level: error, format: json, access: true}"
    try await Rig.run(Configuration(top: ["log": log, "workers": "1"])) { rig in
      // Swift's runtime would take half a minute to print the stacks of a debug build.
      try await rig.semel.kill()
      try await rig.semel.start(under: ["env", "SWIFT_BACKTRACE=enable=no"])
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      expectExecuted(try await connection.response())
      try await connection.send(Rig.orderText("k"))
      // The entry of a request exists before its connection's next one is read.
      #expect(try await connection.response().status == 201)
      rig.semel.process.signal(SIGABRT)
      #expect(try await rig.semel.process.exit() == .signal(SIGABRT))
      #expect(rig.semel.process.output.contains(#""outcome":"executed""#))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a request under which Semel was killed is unknown after its lease, and not run again`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Configuration(store: store, route: ["wait_timeout": "60s"], isAppendOnly: true)) {
      rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      try await rig.semel.kill()
      #expect(try await connection.closedByPeer().isEmpty)
      gate.open()
      try await rig.semel.start()
      let start = ContinuousClock.now
      let after = try await rig.order("k")
      #expect(after.status == 409)
      #expect(after.problem?.code == "outcome_unknown")
      // The wait is for what is left of a lease of 6 s.
      #expect(ContinuousClock.now - start < .seconds(15))
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `with on_unknown: retry it runs again after the lease and settle`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, upstream: ["settle": "1s"], route: ["on_unknown": "retry"], isAppendOnly: true)
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders", inTurn: [Reply(gate: gate), Reply(201, body: "second")])
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      try await rig.semel.kill()
      try await rig.semel.start()
      let response = try await rig.order("k") { $0.status == 201 }
      expectExecuted(response)
      #expect(response.text == "second")
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
      gate.open()
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a response from before Semel was killed is replayed afterwards`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, isAppendOnly: true)) { rig in
      var responded: [String: ReceivedResponse] = [:]
      for round in 0..<3 {
        // Killed during a load: every response that a client got must be replayed.
        let burst = await withTaskGroup(of: (String, ReceivedResponse?).self) { group in
          for number in 0..<20 {
            group.addTask {
              let key = "k\(round)-\(number)"
              return (key, try? await rig.order(key))
            }
          }
          group.addTask {
            _ = try? await rig.backend.arrived(round * 20 + 8)
            try? await rig.semel.kill()
            return ("", nil)
          }
          return await group.reduce(into: [String: ReceivedResponse]()) { $0[$1.0] = $1.1 }
        }
        for (key, response) in burst where response.status == 201 { responded[key] = response }
        try await rig.semel.start()
      }
      for (key, response) in responded { expectReplayed(try await rig.order(key), of: response) }
      for request in rig.backend.requests {
        #expect(rig.backend.runs(of: request["Idempotency-Key"] ?? "") == 1)
      }
    }
  }

  @Test func `a request during which Redis was killed gets its response and runs once`() async throws {
    let configuration = Configuration(store: .redis, isAppendOnly: true)
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      rig.redis?.kill()
      gate.open()
      let response = try await first
      #expect(response.text == "once")
      try await rig.redis?.start()
      let replay = try await rig.order("k") { $0.status == 201 }
      expectReplayed(replay, of: response)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a load during which Redis was killed runs nothing twice`() async throws {
    let configuration = Configuration(store: .redis, isAppendOnly: true)
    try await Rig.run(configuration) { rig in
      let responses = try await withThrowingTaskGroup(of: (String, ReceivedResponse).self) { group in
        for number in 0..<40 {
          group.addTask { ("k\(number)", try await rig.order("k\(number)")) }
        }
        try await rig.backend.arrived(10)
        rig.redis?.kill()
        try await rig.redis?.start()
        return try await group.reduce(into: []) { $0.append($1) }
      }
      for (key, response) in responses {
        #expect(response.status == 201 || response.problem != nil, "\(response.status) \(response.text)")
        let last = try await rig.order(key) { $0.status == 201 || $0.problem?.retryable == false }
        if response.status == 201 { #expect(last.body == response.body) }
        #expect(rig.backend.runs(of: key) <= 1)
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a client that hangs up gets its response later`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      try await connection.close()
      let waiting = try await RawClient(port: rig.semel.ports.proxy)
      try await waiting.send(Rig.orderText("k"))
      expectRefused(try await rig.order("k", [("Prefer", "wait=0")]), 409, "in_flight", retryable: true)
      gate.open()
      let response = try await waiting.response()
      expectReplayed(response, 201)
      #expect(response.text == "once")
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a client that hangs up before its body is whole claims nothing`() async throws {
    try await Rig.run { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(String(Rig.orderText("k").dropLast(3)))
      try await connection.close()
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.log.value.begun == 1)
    }
  }

  @Test(arguments: [
    ([:], "GET /open HTTP/1.1\r\nHost: orders.example\r\n\r\n"),
    (["shadow": "true"], Rig.orderText("k", path: "/v1/orders")),
    (["shadow": "true", "idempotency": "optional"], Rig.orderText(nil, path: "/v1/orders")),
  ])
  func `a client that hangs up on a request without protection is nobody's failure`(
    route: [String: String], request: String
  ) async throws {
    try await Rig.run(Configuration(route: route)) { rig in
      let gate = Gate()
      for path in ["/open", "/v1/orders"] { rig.backend.on(path) { _ in Reply(body: "late", gate: gate) } }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(request)
      try await rig.backend.arrived(1)
      try await connection.reset()
      let line = try await rig.semel.process.line(containing: #""hung_up":"true""#)
      #expect(line.contains(#""outcome":"cut""#) && !line.contains(#""reason""#), "\(line)")
      try await rig.semel.counter("semel_hang_ups_total", becomes: 1)
      #expect(try await rig.semel.counter("semel_failures_total") == 0)
      #expect(try await rig.semel.counter("semel_refusals_total") == 0)
      gate.open()
    }
  }

  /// An owner that was frozen before it could send must not send when it wakes up: its successor has.
  @Test func `a node that wakes up too late sends nothing`() async throws {
    let configuration = Configuration(
      store: .redis, upstream: ["settle": "0s", "connect_retries": "100"],
      route: ["on_unknown": "retry", "lease": "4s"])
    try await Rig.run(configuration, backendIsUp: false) { rig in
      let other = try await rig.secondNode()
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      // Claimed, and trying to connect.
      try await rig.semel.counter("semel_upstream_connect_retries_total", isAtLeast: 1)
      rig.semel.freeze()
      try await rig.backend.start()
      let second = try await rig.order("k", at: other) { $0.status == 201 }
      expectExecuted(second)
      rig.semel.thaw()
      expectReplayed(try await connection.response(), of: second)
      #expect(rig.backend.requests.map(\.attempt) == ["2"])
      #expect(rig.backend.log.value.begun == 1)
      try await other.kill()
    }
  }

  /// An owner that was frozen past its lease must neither overwrite its successor's outcome nor tell another one.
  @Test func `a node that wakes up too late responds as the store's record demands`() async throws {
    let configuration = Configuration(
      store: .redis, upstream: ["settle": "1s"], route: ["on_unknown": "retry", "lease": "4s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders", inTurn: [Reply(body: "first", gate: gate), Reply(body: "second")])
      let other = try await rig.secondNode()
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      rig.semel.freeze()
      let second = try await rig.order("k", at: other) { $0.status == 201 }
      expectExecuted(second)
      #expect(second.text == "second")
      gate.open()
      rig.semel.thaw()
      let superseded = try await connection.response()
      expectReplayed(superseded, of: second)
      try await rig.semel.process.line(containing: "a response came after its record had another outcome")
      expectReplayed(try await rig.order("k"), of: second)
      expectReplayed(try await rig.order("k", at: other), of: second)
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
      try await other.kill()
    }
  }

  /// Freezes the first node during its run of the order "k", until a second node runs it, too. The gates are those of
  /// the backend's two responses, of which the second one refuses the order.
  private func overtake(_ rig: Rig, _ gates: [Gate]) async throws -> (
    other: SemelProcess, connection: RawClient, second: Task<ReceivedResponse, any Error>
  ) {
    rig.backend.on(
      "/v1/orders",
      inTurn: [Reply(body: "first", gate: gates[0]), Reply(503, gate: gates[1]), Reply(body: "third")])
    let other = try await rig.secondNode()
    let connection = try await RawClient(port: rig.semel.ports.proxy)
    try await connection.send(Rig.orderText("k"))
    try await rig.backend.arrived(1)
    rig.semel.freeze()
    let second = Task {
      try await rig.order("k", at: other) { $0["Idempotency-Status"] == "not-stored" }
    }
    try await rig.backend.arrived(2)
    return (other, connection, second)
  }

  /// Its response was complete when another node owned the record, whose own attempt then met a refusal.
  @Test func `a node that wakes up too late does not send again what it has run`() async throws {
    let configuration = Configuration(
      store: .redis, upstream: ["settle": "1s"], route: ["on_unknown": "retry", "lease": "4s"])
    try await Rig.run(configuration) { rig in
      let gates = [Gate(), Gate()]
      let (other, connection, second) = try await overtake(rig, gates)
      gates[0].open()
      rig.semel.thaw()
      expectRefused(try await connection.response(), 409, "outcome_unknown", retryable: true)
      try await rig.semel.process.line(containing: "a response came after another owner had its record")
      try await rig.semel.counter("semel_superseded_owners_total", becomes: 1)
      try await rig.semel.counter("semel_outcomes_lost_total", label: #"route="orders""#, becomes: 1)
      gates[1].open()
      _ = try await second.value
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
      // The route has chosen that its requests run at least once.
      let third = try await rig.order("k") { $0.status == 201 }
      #expect(third.text == "third")
      expectReplayed(try await rig.order("k", at: other), of: third)
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2", "3"])
      try await other.kill()
    }
  }

  @Test func `a lease that lapsed under a frozen node is logged when it wakes up`() async throws {
    try await Rig.run(Configuration(store: .redis, route: ["lease": "4s"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let other = try await rig.secondNode()
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      rig.semel.freeze()
      _ = try await rig.order("k", at: other) { $0.problem?.code == "outcome_unknown" }
      rig.semel.thaw()
      let line = try await rig.semel.process.line(containing: "a lease lapsed while its request was running")
      let id = try #require(rig.backend.requests[0].requestID)
      for part in [
        #""level":"warning""#, #""cause":"renewal_late""#, #""record":"\#(id)""#, #""route":"orders""#,
        #""attempt":1,"#, #""lease_ms":4000"#,
      ] {
        #expect(line.contains(part), "\(part) in \(line)")
      }
      gate.open()
      expectExecuted(try await connection.response())
      try await other.kill()
    }
  }
}
