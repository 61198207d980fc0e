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
        func order(_ amount: Int) async throws -> ReceivedResponse {
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

  @Test(arguments: StoreKind.allCases)
  func `what Stripe does not save is forgotten, and a key is one operation of its account`(store: StoreKind)
    async throws
  {
    try await Rig.run(Configuration(store: store, route: ["profile": "stripe"])) { rig in
      let inUse = #"{"error":{"type":"idempotency_error","code":"idempotency_key_in_use"}}"#
      let declined = #"{"error":{"type":"card_error","code":"card_declined"}}"#
      rig.backend.on(
        "/v1/orders", inTurn: [Reply(429), Reply(409, body: inUse), Reply(401), Reply(402, body: declined)])
      for amount in 1...3 {
        let released = try await rig.order("k", body: #"{"amount":\#(amount)}"#)
        #expect(released.idempotencyStatus == "not-stored", "\(released.text)")
      }
      let first = try await rig.order("k", body: #"{"amount":4}"#)
      expectExecuted(first, 402)
      expectReplayed(try await rig.order("k", body: #"{"amount":4}"#), of: first)
      let elsewhere = try await rig.order("k", body: #"{"amount":4}"#, path: "/v1/refunds")
      #expect(elsewhere.status == 400 && elsewhere.text.contains("idempotency_error"), "\(elsewhere.text)")
      #expect(rig.backend.requests.count == 4)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `keys of the body go by their own error objects`(store: StoreKind) async throws {
    for (profile, member, status, part) in [
      ("square", "idempotency_key", 400, #""code":"IDEMPOTENCY_KEY_REUSED""#),
      ("aip155", "request_id", 409, #""status":"ALREADY_EXISTS""#),
    ] {
      try await Rig.run(Configuration(store: store, route: ["profile": profile])) { rig in
        func order(_ amount: Int) async throws -> ReceivedResponse {
          let body = #"{"\#(member)":"7f7cf1a2-5d6a-4f0e-9d2b-0a2b6a1f3c11","amount":\#(amount)}"#
          return try await rig.order(nil, body: body)
        }
        let first = try await order(1)
        expectExecuted(first)
        expectReplayed(try await order(1), of: first)
        let refused = try await order(2)
        #expect(refused.status == status && refused.text.contains(part), "\(refused.text)")
        #expect(refused["Content-Type"] == "application/json")
        #expect(rig.backend.requests.count == 1)
      }
    }
  }

  private static func delete(_ rig: Rig, _ key: String) async throws -> ReceivedResponse {
    let fields = [("Authorization", "Bearer alice"), ("X-Client-Request-ID", key)]
    return try await rig.semel.client.send("DELETE", "/v1/orders/1", fields)
  }

  /// The settings by which a DELETE whose response was lost reaches the backend again.
  private static let repetitions = [
    ["on_unknown": "retry"],
    [
      "on_unknown": "reconcile",
      "reconcile": "{path: '/deleted?request_id={request_id}', absent: {header: {X-Deleted: none}}}",
    ],
  ]

  @Test(arguments: StoreKind.allCases, [404, 410])
  func `a repeated DELETE that finds nothing has succeeded`(store: StoreKind, status: Int) async throws {
    for members in Self.repetitions {
      let route = members.merging(["profile": "wunderlist"]) { $1 }
      try await Rig.run(Configuration(store: store, upstream: ["settle": "0s"], route: route)) { rig in
        rig.backend.on("/deleted") { _ in Reply(404, [("X-Deleted", "none")]) }
        rig.backend.on("/v1/orders/1") { request in
          request.number == 1 ? .unanswered : Reply(status, body: #"{"error":"gone"}"#)
        }
        expectRefused(try await Self.delete(rig, "a"), 502, "outcome_unknown", retryable: true)
        // The verdict is applied only if the record is read again at once.
        let again = try await Rig.repeated(until: { $0.status != 409 }) { try await Self.delete(rig, "a") }
        expectExecuted(again, 204)
        #expect(again.text.isEmpty)
        expectReplayed(try await Self.delete(rig, "a"), of: again)
        // Nothing was deleted by this one.
        expectExecuted(try await Self.delete(rig, "b"), status)
        let deletions = rig.backend.requests.filter { $0.method == "DELETE" }
        #expect(deletions.map(\.attempt) == ["1", "2", "1"])
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a DELETE of unknown outcome is repeated only where the route allows it`(store: StoreKind) async throws
  {
    let configuration = Configuration(
      store: store, upstream: ["settle": "0s"], route: ["profile": "wunderlist"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders/1", inTurn: [.unanswered, Reply(404)])
      expectRefused(try await Self.delete(rig, "a"), 502, "outcome_unknown", retryable: false)
      for _ in 0..<2 {
        expectRefused(try await Self.delete(rig, "a"), 409, "outcome_unknown", retryable: false)
      }
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a DELETE that finds nothing has not succeeded if no earlier one was lost`(store: StoreKind)
    async throws
  {
    let configuration = Configuration(
      store: store, upstream: ["connect_retries": "0"], route: ["profile": "wunderlist"])
    try await Rig.run(configuration, backendIsUp: false) { rig in
      expectRefused(try await Self.delete(rig, "a"), 502, "upstream_unreachable", retryable: true)
      try await rig.backend.start()
      rig.backend.on("/v1/orders/1", inTurn: [Reply(503), Reply(404)])
      #expect(try await Self.delete(rig, "a").status == 503)
      let third = try await Self.delete(rig, "a")
      expectExecuted(third, 404)
      expectReplayed(try await Self.delete(rig, "a"), of: third)
    }
  }

  @Test func `neither a long body nor the way it is passed on hides that a DELETE has succeeded`()
    async throws
  {
    let route = [
      "profile": "wunderlist", "max_response_body": "1KiB", "cors": "{origins: ['https://a.example']}",
      "on_unknown": "retry",
    ]
    for stream in ["false", "true"] {
      let configuration = Configuration(
        upstream: ["settle": "0s"], route: route.merging(["stream": stream]) { $1 })
      try await Rig.run(configuration) { rig in
        let allowed = [("Access-Control-Allow-Origin", "https://a.example")]
        rig.backend.on("/v1/orders/1") { request in
          request.number == 1 ? .unanswered : Reply(404, allowed, content: .filler(4096))
        }
        let fields = [
          ("Authorization", "Bearer alice"), ("X-Client-Request-ID", "a"), ("Origin", "https://a.example"),
        ]
        #expect(try await rig.semel.client.send("DELETE", "/v1/orders/1", fields).status == 502)
        for number in 0..<2 {
          let response = try await rig.semel.client.send("DELETE", "/v1/orders/1", fields)
          #expect(response.status == 204 && response.text.isEmpty)
          #expect(response["Access-Control-Allow-Origin"] == "https://a.example")
          #expect(response.idempotencyStatus == (number == 0 ? "executed" : "replayed"))
        }
        #expect(rig.backend.requests.count == 2)
      }
    }
  }

  @Test(arguments: [true, false])
  func `a repeated DELETE that is said to have no outcome yet has none`(isOfRoute: Bool) async throws {
    var route = ["profile": "wunderlist"]
    if isOfRoute { route["outcomes"] = "{retry: [404]}" }
    try await Rig.run(Configuration(route: route)) { rig in
      rig.backend.on("/v1/orders/1") { request in
        request.number == 1 ? Reply(503) : Reply(404, isOfRoute ? [] : [("Idempotency-Outcome", "retry")])
      }
      let fields = [("Authorization", "Bearer alice"), ("X-Client-Request-ID", "a")]
      for status in [503, 404, 404] {
        let response = try await rig.semel.client.send("DELETE", "/v1/orders/1", fields)
        #expect(response.status == status)
      }
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a request id finds its outcome, and is the backend's own`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["profile": "wunderlist"])) { rig in
      rig.backend.on("/v1/tasks", inTurn: [Reply(503), Reply(201, body: #"{"id":1}"#)])
      let fields = [("Authorization", "Bearer alice"), ("X-Client-Request-ID", "5f0c")]
      func create() async throws -> ReceivedResponse {
        try await rig.semel.client.send("POST", "/v1/tasks", fields, body: "{}")
      }
      func outcome(_ more: String = "") async throws -> ReceivedResponse {
        let path = "/.well-known/idempotency/outcome?method=POST&path=/v1/tasks\(more)"
        return try await rig.semel.client.send("GET", path, fields)
      }
      #expect(try await outcome().text.contains(#""state":"absent""#))
      #expect(try await create().status == 503)
      #expect(try await outcome().text.contains(#""state":"released""#))
      let done = try await create()
      expectExecuted(done)
      #expect(try await outcome().text.contains(#""state":"completed""#))
      expectReplayed(try await outcome("&response=true"), of: done)
      let ids = Set(rig.backend.requests.map(\.requestID))
      #expect(ids.count == 1 && !ids.contains(nil) && !ids.contains("5f0c"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
    }
  }

  /// A webhook's deliveries of one event, each signed anew, and another event.
  private func deliver(
    _ route: [String: String], store: StoreKind, path: String,
    _ event: @escaping @Sendable (_ event: String, _ attempt: Int) -> ([(String, String)], String)
  ) async throws {
    let route = ["profile": "webhook", "caller": "{shared: true}", "outcomes": "{retry: [4xx, 500]}"].merging(
      route
    ) { $1 }
    try await Rig.run(Configuration(store: store, route: route)) { rig in
      rig.backend.on(path, inTurn: [Reply(500), Reply(200, body: "taken")])
      func send(_ name: String, _ attempt: Int) async throws -> ReceivedResponse {
        let (fields, body) = event(name, attempt)
        return try await rig.semel.client.send(
          "POST", path, fields + [("Content-Type", "application/json")], body: body)
      }
      // The receiver failed, and wants the event again.
      #expect(try await send("1", 1).status == 500)
      let taken = try await send("1", 2)
      expectExecuted(taken, 200)
      expectReplayed(try await send("1", 3), of: taken)
      expectExecuted(try await send("2", 1), 200)
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `Stripe's events are taken once`(store: StoreKind) async throws {
    try await deliver([:], store: store, path: "/v1/stripe") { event, attempt in
      let body = """
        {"id": "evt_1PgafTB1WZ\(event)", "object": "event", "api_version": "2026-06-30", "created": 1721572800,
        "type": "charge.succeeded", "livemode": false, "pending_webhooks": \(3 - attempt),
        "request": {"id": "req_1", "idempotency_key": "order-1"},
        "data": {"object": {"id": "ch_1", "object": "charge", "amount": 1999, "currency": "usd"}}}
        """
      return ([("Stripe-Signature", "t=172157280\(attempt),v1=5257a869e7\(attempt)")], body)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `GitHub's events are taken once`(store: StoreKind) async throws {
    let key = ["key": "{from: ['header:X-GitHub-Delivery']}"]
    try await deliver(key, store: store, path: "/v1/github") { event, attempt in
      let fields = [
        ("User-Agent", "GitHub-Hookshot/044aadd"), ("X-GitHub-Event", "push"),
        ("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc095\(event)"),
        (
          "X-Hub-Signature-256",
          "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e1\(attempt)"
        ),
      ]
      // Two events may have equal bodies, and no member of them is an id.
      return (
        fields, #"{"ref": "refs/heads/main", "repository": {"id": 1296269, "full_name": "octocat/hello"}}"#
      )
    }
  }
}
