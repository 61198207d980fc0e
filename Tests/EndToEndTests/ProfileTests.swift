import TestSupport
import Testing

/// The contracts of well-known APIs.
struct ProfileTests {
  @Test(arguments: StoreKind.allCases)
  func `a mismatch is the error of the API`(store: StoreKind) async throws {
    for (profile, header, status, part) in [
      ("ietf", "Idempotency-Key", 422, #""code":"payload_mismatch""#),
      ("stripe", "Idempotency-Key", 400, #""type":"idempotency_error""#),
      ("paypal", "PayPal-Request-Id", 400, #""issue":"DUPLICATE_REQUEST_ID""#),
      ("wunderlist", "X-Client-Request-ID", 409, #""code":"payload_mismatch""#),
    ] {
      try await Rig.run(Configuration(store: store, route: ["profile": profile])) { rig in
        let fields = Rig.fields(key: nil) + [(header, "k")]
        func order(_ amount: Int) async throws -> Answer {
          try await rig.semel.client.send("POST", "/v1/orders", fields, body: #"{"amount":\#(amount)}"#)
        }
        let first = try await order(1)
        expectExecuted(first)
        expectReplayed(try await order(1), of: first)
        let refused = try await order(2)
        #expect(refused.status == status && refused.text.contains(part), "\(refused.text)")
        #expect(refused["X-Should-Retry"] == "false")
        #expect(refused["Stripe-Should-Retry"] == (profile == "stripe" ? "false" : nil))
        #expect(rig.backend.requests.count == 1)
      }
    }
  }

  @Test func `keys of the body go by their own error objects`() async throws {
    for (profile, member, part) in [
      ("square", "idempotency_key", #""code":"IDEMPOTENCY_KEY_REUSED""#),
      ("aip155", "request_id", #""status":"ALREADY_EXISTS""#),
    ] {
      try await Rig.run(Configuration(route: ["profile": profile])) { rig in
        func order(_ amount: Int) async throws -> Answer {
          let body = #"{"\#(member)":"7f7cf1a2-5d6a-4f0e-9d2b-0a2b6a1f3c11","amount":\#(amount)}"#
          return try await rig.order(nil, body: body)
        }
        let first = try await order(1)
        expectExecuted(first)
        expectReplayed(try await order(1), of: first)
        let refused = try await order(2)
        #expect(refused.text.contains(part), "\(refused.text)")
        #expect(refused["Content-Type"] == "application/json")
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a repeated DELETE that finds nothing has succeeded`(store: StoreKind) async throws {
    let route = ["profile": "wunderlist", "on_unknown": "retry"]
    try await Rig.run(Configuration(store: store, upstream: ["settle": "0s"], route: route)) { rig in
      rig.backend.on("/v1/orders/1") { request in
        request.number == 1 ? .unanswered : Reply(404, body: #"{"error":"gone"}"#)
      }
      func delete(_ key: String) async throws -> Answer {
        let fields = [("Authorization", "Bearer alice"), ("X-Client-Request-ID", key)]
        return try await rig.semel.client.send("DELETE", "/v1/orders/1", fields)
      }
      expectRefused(try await delete("a"), 502, "outcome_unknown", retryable: true)
      let again = try await delete("a")
      expectExecuted(again, 204)
      #expect(again.text.isEmpty)
      expectReplayed(try await delete("a"), of: again)
      // Nothing was deleted by this one.
      expectExecuted(try await delete("b"), 404)
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test func `an event is taken once, whoever delivers it and however often`() async throws {
    let route = ["profile": "webhook", "caller": "{shared: true}"]
    try await Rig.run(Configuration(route: route)) { rig in
      func deliver(_ id: String, attempt: Int) async throws -> Answer {
        try await rig.semel.client.send(
          "POST", "/v1/events", [("Content-Type", "application/json"), ("X-Attempt", "\(attempt)")],
          body: #"{"id":"\#(id)","type":"charge.succeeded","attempt":\#(attempt)}"#)
      }
      let first = try await deliver("evt_1", attempt: 1)
      expectExecuted(first)
      expectReplayed(try await deliver("evt_1", attempt: 2), of: first)
      expectExecuted(try await deliver("evt_2", attempt: 1))
      #expect(rig.backend.requests.count == 2)
    }
  }
}
