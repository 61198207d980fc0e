import TestSupport
import Testing

/// A used key with another payload is refused, never run.
struct MismatchTests {
  @Test(arguments: StoreKind.allCases)
  func `a used key with another body is refused`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      expectExecuted(try await rig.order("k"))
      let refused = try await rig.order("k", body: #"{"amount":2000}"#)
      expectRefused(refused, 409, "payload_mismatch", retryable: false)
      #expect(!refused.text.contains("2000"))
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: [422, 400])
  func `the status follows the route`(status: Int) async throws {
    try await Rig.run(Configuration(route: ["mismatch_status": "\(status)"])) { rig in
      expectExecuted(try await rig.order("k"))
      expectRefused(
        try await rig.order("k", body: "{}"), status, "payload_mismatch", retryable: false)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `another body is refused while the first is in flight, and after it was released`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders", inTurn: [Reply(503, gate: gate), Reply(201)])
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      expectRefused(try await rig.order("k", body: "{}"), 409, "payload_mismatch", retryable: false)
      gate.open()
      #expect(try await first.idempotencyStatus == "not-stored")
      expectRefused(try await rig.order("k", body: "{}"), 409, "payload_mismatch", retryable: false)
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.count == 2)
    }
  }

  /// A body, another one, and whether they are the same payload.
  static let pairs: [(String, String, String, Bool)] = [
    ("application/json", #"{"a":1,"b":[1,2]}"#, #"{ "b" : [1, 2], "a" : 1 }"#, true),
    ("application/json", #"{"a":1,"b":[1,2]}"#, #"{"a":1,"b":[2,1]}"#, false),
    ("application/json", #"{"a":1}"#, #"{"a":1.0}"#, false),
    ("application/json", #"{"a":12345678901234567890}"#, #"{"a":12345678901234567891}"#, false),
    ("application/json; charset=utf-8", #"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, true),
    ("application/vnd.api+json", #"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, true),
    ("application/x-www-form-urlencoded", "a=1&b=2", "b=2&a=1", true),
    ("application/x-www-form-urlencoded", "a=1&b=2", "a=1&b=3", false),
    ("text/plain", "a b", "a  b", false),
    ("application/json", #"{"a":1"#, #"{"a": 1"#, false),
  ]

  @Test(arguments: pairs)
  func `payloads are compared by their meaning`(
    type: String, first: String, second: String, isSame: Bool
  ) async throws {
    try await Rig.run { rig in
      let fields = [("Authorization", "Bearer alice"), ("Idempotency-Key", "k"), ("Content-Type", type)]
      expectExecuted(try await rig.semel.client.send("POST", "/v1/orders", fields, body: first))
      let response = try await rig.semel.client.send("POST", "/v1/orders", fields, body: second)
      if isSame {
        expectReplayed(response, 201)
      } else {
        expectRefused(response, 409, "payload_mismatch", retryable: false)
      }
      #expect(rig.backend.requests.map(\.text) == [first])
    }
  }

  @Test func `a multipart body is compared without its boundary`() async throws {
    try await Rig.run { rig in
      func send(boundary: String, amount: Int) async throws -> ReceivedResponse {
        try await rig.semel.client.send(
          "POST", "/v1/orders",
          [
            ("Authorization", "a"), ("Idempotency-Key", "k"),
            ("Content-Type", "multipart/form-data; boundary=\(boundary)"),
          ],
          body:
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n\(amount)\r\n--\(boundary)--\r\n"
        )
      }
      expectExecuted(try await send(boundary: "first", amount: 1))
      expectReplayed(try await send(boundary: "second", amount: 1), 201)
      expectRefused(try await send(boundary: "third", amount: 2), 409, "payload_mismatch", retryable: false)
    }
  }

  @Test func `members and fields enter as the route configures`() async throws {
    let fingerprint = "{body: auto, headers: [X-Tenant], ignore: [/sent_at]}"
    try await Rig.run(Configuration(route: ["fingerprint": fingerprint])) { rig in
      expectExecuted(try await rig.order("k", body: #"{"amount":1,"sent_at":"09:00"}"#))
      expectReplayed(try await rig.order("k", body: #"{"amount":1,"sent_at":"09:01"}"#), 201)
      expectRefused(
        try await rig.order("k", body: #"{"amount":1,"sent_at":"09:00"}"#, [("X-Tenant", "b")]), 409,
        "payload_mismatch", retryable: false)
    }
  }

  @Test func `the query is part of the payload, in any order`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k", path: "/v1/orders?a=1&b=2"))
      expectReplayed(try await rig.order("k", path: "/v1/orders?b=2&a=1"), 201)
      expectRefused(
        try await rig.order("k", path: "/v1/orders?a=1&b=3"), 409, "payload_mismatch", retryable: false)
    }
  }
}
