import TestSupport
import Testing

/// The quotas of one caller, which no other one notices.
struct QuotaTests {
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
      #expect(try await rig.semel.counter("semel_refusals_total", label: "quota_exceeded") >= 1)
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
