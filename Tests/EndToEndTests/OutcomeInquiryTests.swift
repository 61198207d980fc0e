import TestSupport
import Testing

/// The outcome of a request that is not sent again.
struct OutcomeInquiryTests {
  private static let order = "/.well-known/idempotency/outcome?method=POST&path=/v1/orders"

  @Test func `a caller without a credential is told the state, and not the response`() async throws {
    try await Rig.run(Configuration(route: ["caller": "{parts: ['query:account']}"])) { rig in
      let key = [("Idempotency-Key", "k"), ("Content-Type", "application/json")]
      let target = "/v1/orders?account=alice"
      let first = try await rig.semel.client.send("POST", target, key, body: "{}")
      expectExecuted(first)
      let inquiry = "/.well-known/idempotency/outcome?method=POST&path=%2Fv1%2Forders%3Faccount=alice"
      let state = try await rig.semel.client.send("GET", inquiry, key)
      #expect(state.status == 200 && state.text.contains(#""state":"completed""#), "\(state)")
      let refused = try await rig.semel.client.send("GET", inquiry + "&response=true", key)
      expectRefused(refused, 400, "bad_request", retryable: false)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an outcome is reported to its caller alone`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      func inquire(_ more: String = "", caller: String = "Bearer alice") async throws -> ReceivedResponse {
        try await rig.semel.client.send("GET", Self.order + more, Rig.fields(key: "k", caller: caller))
      }
      #expect(try await inquire().text == "{\"state\":\"absent\"}\n")
      let first = try await rig.order("k")
      let reported = try await inquire()
      #expect(reported.status == 200 && reported["Cache-Control"] == "no-store")
      #expect(reported.text.hasPrefix(#"{"state":"completed","status":201,"recorded_at":"2"#))
      #expect(reported.text.hasSuffix("\"attempt\":1}\n"))
      #expect(try await inquire(caller: "Bearer bob").text == "{\"state\":\"absent\"}\n")
      let replay = try await inquire("&response=true")
      expectReplayed(replay, of: first)
      #expect(replay["Cache-Control"] == "no-store")
      let other = try await inquire("&response=true", caller: "Bearer bob")
      #expect(other.status == 404 && other.text == "{\"state\":\"absent\"}\n")
      let missing = try await rig.semel.client.send("GET", Self.order, [("Authorization", "Bearer alice")])
      expectRefused(missing, 400, "key_missing", retryable: false)
      let unknown = try await rig.semel.client.send("GET", Self.order + "&wait=1s", Rig.fields(key: "k"))
      expectRefused(unknown, 400, "bad_request", retryable: false)
      let small = Self.order.replacing("POST", with: "post")
      expectRefused(
        try await rig.semel.client.send("GET", small, Rig.fields(key: "k")), 400, "bad_request",
        retryable: false)
      let twice = try await rig.semel.client.send(
        "GET", Self.order + "&key=k&key=k", [("Authorization", "Bearer alice")])
      expectRefused(twice, 400, "bad_request", retryable: false)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an inquiry waits for the end of what is in flight`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: #"{"order":1}"#, gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let client = rig.semel.client
      let fields = Rig.fields(key: "k")
      let flying = try await client.send("GET", Self.order, fields)
      #expect(flying.text == "{\"state\":\"in_flight\",\"attempt\":1}\n")
      let late = try await client.send("GET", Self.order + "&attach=50ms&response=true", fields)
      #expect(late.status == 404 && late.text == flying.text)
      async let attached = client.send("GET", Self.order + "&attach=1h&response=true", fields)
      try await rig.semel.counter("semel_waiting_requests", becomes: 1)
      gate.open()
      expectReplayed(try await attached, of: try await first)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `inquiries count in their caller's quota`(store: StoreKind) async throws {
    let limits = ["limits": "{caller_in_flight: 2}"]
    try await Rig.run(Configuration(store: store, top: limits)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let client = rig.semel.client
      async let attached = client.send("GET", Self.order + "&attach=1h", Rig.fields(key: "k"))
      try await rig.semel.counter("semel_waiting_requests", becomes: 1)
      let refused = try await client.send("GET", Self.order, Rig.fields(key: "k"))
      expectRefused(refused, 429, "quota_exceeded", retryable: true)
      let other = try await client.send("GET", Self.order, Rig.fields(key: "k", caller: "Bearer bob"))
      #expect(other.text == "{\"state\":\"absent\"}\n")
      gate.open()
      expectExecuted(try await first)
      #expect(try await attached.text.hasPrefix(#"{"state":"completed""#))
      #expect(try await client.send("GET", Self.order, Rig.fields(key: "k")).status == 200)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a lost outcome is reported as unknown`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: false)
      let reported = try await rig.semel.client.send("GET", Self.order, Rig.fields(key: "k"))
      #expect(reported.text == "{\"state\":\"unknown\",\"attempt\":1}\n")
    }
  }
}
