import TestSupport
import Testing

/// The quotas of one caller, which no other one notices.
struct QuotaTests {
  @Test func `each item of a batch counts, and a batch is never too large beside nothing`() async throws {
    let route = [
      "match": "{methods: [POST], path: /v1/orders}", "duplicates": "reject",
      "batch": "{items: '', key: /id, results: ''}",
    ]
    let limits = ["limits": "{caller_in_flight: 2}"]
    try await Rig.run(Configuration(top: limits, route: route)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(200, body: #"[{"id":"a"},{"id":"b"},{"id":"c"}]"#, gate: gate)
      }
      let fields = [("Authorization", "Bearer alice"), ("Content-Type", "application/json")]
      let first = Task {
        try await rig.semel.client.send(
          "POST", "/v1/orders", fields, body: #"[{"id":"a"},{"id":"b"},{"id":"c"}]"#)
      }
      try await rig.backend.arrived(1)
      let beside = try await rig.semel.client.send("POST", "/v1/orders", fields, body: #"[{"id":"d"}]"#)
      expectRefused(beside, 429, "quota_exceeded", retryable: true)
      gate.open()
      let response = try await first.value
      #expect(
        response.status == 200 && response.idempotencyStatus == "batch; executed=3; replayed=0; refused=0")
      let after = try await rig.semel.client.send(
        "POST", "/v1/orders", fields, body: #"[{"id":"a"},{"id":"b"}]"#)
      #expect(after.idempotencyStatus == "batch; executed=0; replayed=2; refused=0", "\(after)")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a caller with too many requests in flight is refused, and no other`(store: StoreKind) async throws {
    let limits = ["limits": "{caller_in_flight: 2}"]
    try await Rig.run(Configuration(store: store, top: limits)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { Reply(body: "{\"order\":\($0.number)}", gate: gate) }
      async let first = rig.order("1")
      async let second = rig.order("2")
      try await rig.backend.arrived(2)
      let refused = try await rig.order("3")
      expectRefused(refused, 429, "quota_exceeded", retryable: true)
      expectRetryAfter(refused)
      async let other = rig.order("3", caller: "Bearer bob")
      try await rig.backend.arrived(3)
      gate.open()
      for response in try await [first, second, other] { expectExecuted(response) }
      expectExecuted(try await rig.order("3") { $0.status != 429 })
      #expect(rig.backend.requests.count == 4)
      try await rig.semel.counter("semel_refusals_total", label: "quota_exceeded", isAtLeast: 1)
    }
  }

  @Test func `clients that are one caller have no quota together`() async throws {
    let limits = ["limits": "{caller_in_flight: 1, caller_new_keys: 1/m}"]
    try await Rig.run(Configuration(top: limits, route: ["caller": "{shared: true}"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("1")
      async let second = rig.order("2")
      try await rig.backend.arrived(2)
      gate.open()
      for response in try await [first, second] { expectExecuted(response) }
    }
  }

  @Test func `a caller whose requests take long leaves connections to the backend for others`() async throws {
    let upstream = ["max_connections": "4", "connect_timeout": "500ms"]
    try await Rig.run(Configuration(top: ["workers": "1"], upstream: upstream)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { Reply(gate: $0["Authorization"] == "Bearer bob" ? nil : gate) }
      try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for number in 1...3 { group.addTask { try await rig.order("slow-\(number)") } }
        try await rig.backend.arrived(3)
        expectRefused(try await rig.order("more"), 503, "overloaded", retryable: true)
        expectExecuted(try await rig.order("k", caller: "Bearer bob"))
        gate.open()
        for try await response in group { expectExecuted(response) }
      }
      // The refused request was not sent.
      expectExecuted(try await rig.order("more"))
      #expect(rig.backend.requests.count == 5)
    }
  }

  @Test func `a request counts for its caller before its body is here`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{caller_in_flight: 2}"])) { rig in
      var slow: [RawClient] = []
      for number in 0..<2 {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        let fields = Rig.fields(key: "slow-\(number)") + [("Transfer-Encoding", "chunked")]
        try await client.send(HTTPClient.request("POST", "/v1/orders", fields) + "1\r\n{\r\n")
        slow.append(client)
      }
      try await rig.semel.counter("semel_in_flight_requests", becomes: 2)
      expectRefused(try await rig.order("3"), 429, "quota_exceeded", retryable: true)
      expectExecuted(try await rig.order("3", caller: "Bearer bob"))
      for client in slow {
        try await client.send("1\r\n}\r\n0\r\n\r\n")
        expectExecuted(try await client.response())
      }
      expectExecuted(try await rig.order("3") { $0.status != 429 })
      #expect(rig.backend.requests.count == 4)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a caller that uses new keys too fast is refused, but not its retries`(store: StoreKind) async throws {
    let limits = ["limits": "{caller_new_keys: 2/h}"]
    try await Rig.run(Configuration(store: store, top: limits)) { rig in
      let first = try await rig.order("1")
      expectExecuted(first)
      expectExecuted(try await rig.order("2"))
      let refused = try await rig.order("3")
      expectRefused(refused, 429, "quota_exceeded", retryable: true)
      #expect((Int(refused["Retry-After"] ?? "") ?? 0) > 60)
      expectReplayed(try await rig.order("1"), of: first)
      expectExecuted(try await rig.order("3", caller: "Bearer bob"))
      let inquiry = "/.well-known/idempotency/outcome?method=POST&path=/v1/orders"
      let deadline = ContinuousClock.now + .seconds(20)
      var outcome = ""
      repeat {
        outcome = try await rig.semel.client.send("GET", inquiry, Rig.fields(key: "3")).text
      } while !outcome.contains("absent") && ContinuousClock.now < deadline
      #expect(outcome.contains("absent"), "\(outcome)")
      #expect(rig.backend.requests.count == 3)
    }
  }
}
