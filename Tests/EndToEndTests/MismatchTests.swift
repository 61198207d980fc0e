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
    ("application/json", #"{"a":1}"#, #"{"a":1.0}"#, true),
    ("application/json", #"{"a":12345678901234567890}"#, #"{"a":12345678901234567891}"#, false),
    ("application/json; charset=utf-8", #"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, true),
    ("application/vnd.api+json", #"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, true),
    ("application/x-www-form-urlencoded", "a=1&b=2", "b=2&a=1", true),
    ("application/x-www-form-urlencoded", "a=1&b=2", "a=1&b=3", false),
    (
      "application/x-www-form-urlencoded", "items[][n]=A&items[][p]=9&items[][n]=B",
      "items[][n]=A&items[][n]=B&items[][p]=9", false
    ),
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

  @Test(arguments: ["Destination", "X-Amz-Target", "SOAPAction", "Upload-Offset", "If-Match"])
  func `a field that holds the operation is part of the payload, whatever the route lists`(
    name: String
  ) async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k", [(name, "a")]))
      expectReplayed(try await rig.order("k", [(name, "a")]), 201)
      expectRefused(try await rig.order("k", [(name, "b")]), 409, "payload_mismatch", retryable: false)
      expectRefused(try await rig.order("k"), 409, "payload_mismatch", retryable: false)
    }
  }

  @Test func `a compressed body is compared by its content, and forwarded as it is`() async throws {
    try await Rig.run { rig in
      func send(_ coding: String?, _ body: [UInt8]) async throws -> ReceivedResponse {
        let fields =
          [
            ("Authorization", "a"), ("Idempotency-Key", "k"), ("Content-Type", "application/json"),
            ("Content-Length", "\(body.count)"),
          ] + (coding.map { [("Content-Encoding", $0)] } ?? [])
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        try await connection.send(Array(HTTPClient.request("POST", "/v1/orders", fields).utf8) + body)
        return try await connection.response()
      }
      // {"amount":1.0} by gzip at two levels, and in clear.
      expectExecuted(try await send("gzip", Self.fast))
      expectReplayed(try await send("gzip", Self.best), 201)
      expectReplayed(try await send(nil, Array(#"{"amount": 1}"#.utf8)), 201)
      expectRefused(
        try await send(nil, Array(#"{"amount":2}"#.utf8)), 409, "payload_mismatch", retryable: false)
      expectRefused(try await send("gzip", Self.fast + [0]), 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.map(\.body) == [Self.fast])
    }
  }

  private static let fast: [UInt8] = [
    31, 139, 8, 0, 1, 0, 0, 0, 4, 255, 171, 86, 74, 204, 205, 47, 205, 43, 81, 178, 50, 212, 51, 168, 5, 0,
    25, 160, 164, 226, 14, 0, 0, 0,
  ]
  private static let best: [UInt8] = [
    31, 139, 8, 0, 2, 0, 0, 0, 2, 255, 171, 86, 74, 204, 205, 47, 205, 43, 81, 178, 50, 212, 51, 168, 5, 0,
    25, 160, 164, 226, 14, 0, 0, 0,
  ]
  @Test func `members are left out of JSON of any type`() async throws {
    try await Rig.run(Configuration(route: ["fingerprint": "{ignore: [/at]}"])) { rig in
      func send(_ type: String, _ body: String) async throws -> ReceivedResponse {
        try await rig.semel.client.send(
          "POST", "/v1/orders",
          [("Authorization", "a"), ("Idempotency-Key", type), ("Content-Type", type)], body: body)
      }
      for type in ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream"] {
        expectExecuted(try await send(type, #"{"a":1,"at":"09:00"}"#))
        expectReplayed(try await send(type, #" {"at":"09:01","a":1}"#), 201)
        expectRefused(
          try await send(type, #"{"a":2,"at":"09:00"}"#), 409, "payload_mismatch", retryable: false)
      }
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
