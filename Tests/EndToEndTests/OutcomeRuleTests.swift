import TestSupport
import Testing

/// The meaning of responses by a route's own rules.
struct OutcomeRuleTests {
  private static func configuration(
    _ outcomes: String, store: StoreKind = .embedded, _ route: [String: String] = [:]
  ) -> Configuration {
    Configuration(store: store, route: route.merging(["outcomes": outcomes]) { _, own in own })
  }

  private static let rules = """
    [{status: [500-599], header: {Transient-Error: "true"}, is: retry}, \
    {status: 200, json: {/errors/0/extensions/code: PERSISTED_QUERY_NOT_FOUND}, is: deleted}, \
    {status: [400-499], json: {/code: in_doubt}, is: unknown}, {status: [400-499], is: retry}]
    """

  @Test(arguments: StoreKind.allCases)
  func `the first rule that a response meets decides`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(Self.rules, store: store)) { rig in
      let cases: [(reply: Reply, label: String)] = [
        (Reply(500, [("Transient-Error", "true")], body: "busy"), "not-stored"),
        (Reply(500, [("Transient-Error", "false")], body: "broken"), "executed"),
        (Reply(422, body: #"{"code":"in_doubt"}"#), "unknown"),
        (Reply(422, body: #"{"code":"taken"}"#), "not-stored"), (Reply(404, body: ""), "not-stored"),
        (Reply(200, body: #"{"errors":[{"extensions":{"code":"FORBIDDEN"}}]}"#), "executed"),
        (Reply(201, body: #"{"id":1}"#), "executed"),
        (Reply(422, [("Idempotency-Outcome", "final")], body: #"{"code":"in_doubt"}"#), "executed"),
      ]
      for (index, (reply, label)) in cases.enumerated() {
        rig.backend.on("/v1/orders", inTurn: [reply, Reply(201, body: "next")])
        let first = try await rig.order("k\(index)")
        #expect(first.status == reply.status && first.idempotencyStatus == label, "\(index)")
        let second = try await rig.order("k\(index)")
        switch label {
        case "executed": expectReplayed(second, of: first)
        case "unknown": expectRefused(second, 409, "outcome_unknown", retryable: false)
        default: expectExecuted(second)
        }
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a response of class deleted lets another payload follow`(store: StoreKind) async throws {
    let rules = "[{status: 422, json: {/field: present}, is: deleted}, {status: 422, is: retry}]"
    try await Rig.run(Self.configuration(rules, store: store)) { rig in
      rig.backend.on(
        "/v1/orders",
        inTurn: [
          Reply(422, body: #"{"field":"amount"}"#), Reply(201), Reply(422, body: #"{"field":null}"#),
          Reply(201),
        ])
      #expect(try await rig.order("form").idempotencyStatus == "not-stored")
      let corrected = try await rig.order("form", body: #"{"amount":1}"#)
      expectExecuted(corrected)
      expectRefused(try await rig.order("form"), 409, "payload_mismatch", retryable: false)
      expectReplayed(try await rig.order("form", body: #"{"amount":1}"#), of: corrected)
      // Of the other rule's class, the payload stays.
      #expect(try await rig.order("kept").idempotencyStatus == "not-stored")
      expectRefused(
        try await rig.order("kept", body: "{}"), 409, "payload_mismatch", retryable: false)
      expectExecuted(try await rig.order("kept"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "1", "1", "2"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `what met more than that keeps its payload`(store: StoreKind) async throws {
    let rules = "[{status: 422, is: deleted}]"
    try await Rig.run(Self.configuration(rules, store: store, ["max_attempts": "2"])) { rig in
      rig.backend.on(
        "/v1/orders", inTurn: [Reply(422), Reply(503), Reply(422), Reply(422), Reply(503, body: "last")])
      for _ in 1...4 { #expect(try await rig.order("k").idempotencyStatus == "not-stored") }
      expectRefused(try await rig.order("k", body: "{}"), 409, "payload_mismatch", retryable: false)
      // As a 401, it does not count as an attempt.
      expectExecuted(try await rig.order("k"), 503)
      expectReplayed(try await rig.order("k"), 503)
      #expect(rig.backend.requests.map(\.attempt) == ["1", "1", "2", "3", "4"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a route that forgets what it released takes a corrected payload`(store: StoreKind) async throws {
    let configuration = Self.configuration("{retry: [422]}", store: store, ["released": "forget"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(422), Reply(503), Reply(201)])
      #expect(try await rig.order("k").idempotencyStatus == "not-stored")
      #expect(try await rig.order("k", body: #"{"amount":1}"#).idempotencyStatus == "not-stored")
      expectExecuted(try await rig.order("k", body: #"{"amount":2}"#))
      expectRefused(try await rig.order("k"), 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.map(\.attempt) == ["1", "1", "1"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `after a lost outcome nothing is forgotten, and a rule that names the status ends it`(store: StoreKind)
    async throws
  {
    let rules =
      "[{status: 422, json: {/code: stale}, is: deleted}, {status: 422, json: {/code: taken}, is: final}]"
    let configuration = Configuration(
      store: store, upstream: ["settle": "0s"],
      route: ["on_unknown": "retry", "outcomes": rules, "released": "forget"])
    try await Rig.run(configuration) { rig in
      rig.backend.on(
        "/v1/orders",
        inTurn: [
          .unanswered, Reply(422, body: #"{"code":"stale"}"#), Reply(422, body: "{}"),
          Reply(422, body: #"{"code":"taken"}"#),
        ])
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: true)
      #expect(try await rig.order("k").idempotencyStatus == "not-stored")
      expectRefused(try await rig.order("k", body: "{}"), 409, "payload_mismatch", retryable: false)
      // It meets no rule.
      #expect(try await rig.order("k").idempotencyStatus == "unknown")
      expectExecuted(try await rig.order("k"), 422)
      expectReplayed(try await rig.order("k"), 422)
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2", "3", "4"])
    }
  }

  /// JSON of about this size, with the code at its end.
  private static func filled(_ size: Int) -> String {
    #"{"x":""# + String(repeating: "x", count: size) + #"","code":"busy"}"#
  }

  @Test func `a body that is not recorded, coded or no JSON meets no rule that reads it`() async throws {
    let rules = "[{json: {/code: busy}, is: retry}]"
    try await Rig.run(Self.configuration(rules, ["max_response_body": "64KiB"])) { rig in
      let busy = #"{"code":"busy"}"#
      let cases: [(reply: Reply, label: String)] = [
        (Reply(400, body: busy), "not-stored"), (Reply(400, body: busy, framing: .chunked), "not-stored"),
        // A part of it may be missing.
        (Reply(400, body: busy, framing: .close), "executed; kept=no"),
        // It is read on another thread.
        (Reply(400, body: Self.filled(40_000)), "not-stored"),
        (Reply(400, body: Self.filled(70_000)), "executed; kept=no"),
        (Reply(400, [("Content-Encoding", "br")], body: busy), "executed"),
        (Reply(400, body: busy + "}"), "executed"), (Reply(400, body: ""), "executed"),
        (Reply(400, body: #"{"code":"done","code":"busy"}"#), "executed"),
      ]
      for (index, (reply, label)) in cases.enumerated() {
        rig.backend.on("/v1/orders") { _ in reply }
        let response = try await rig.order("k\(index)")
        #expect(response.idempotencyStatus == label, "\(index)")
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `success whose end is not certain is no retry by its body`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration("[{json: {/e: present}, is: retry}]", store: store)) { rig in
      rig.backend.on(
        "/v1/orders", inTurn: [Reply(200, body: #"{"e":1}"#, framing: .close), Reply(201, body: "twice")])
      expectExecuted(try await rig.order("k"), 200, isKept: false)
      expectRefused(try await rig.order("k"), 409, "response_not_kept", retryable: false)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `Semel repeats what a rule releases, and nothing else of its status`(store: StoreKind) async throws {
    let rules = "[{status: 500, header: {Transient-Error: \"true\"}, is: retry}]"
    let configuration = Self.configuration(
      rules, store: store, ["retries": "{max: 3, backoff: 1ms, on: [500]}"])
    try await Rig.run(configuration) { rig in
      let transient = Reply(500, [("Transient-Error", "true")])
      rig.backend.on("/v1/orders", inTurn: [transient, transient, Reply(201)])
      expectExecuted(try await rig.order("a"))
      #expect(rig.backend.requests.count == 3)
      rig.backend.on("/v1/orders", inTurn: [transient, Reply(500, body: "broken"), Reply(201)])
      expectExecuted(try await rig.order("b"), 500)
      expectReplayed(try await rig.order("b"), 500)
      #expect(rig.backend.requests.count == 5)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a batch that a rule releases lets each item follow with another content`(store: StoreKind)
    async throws
  {
    let route = [
      "batch": "{items: /orders, key: /id, results: /results}",
      "outcomes": "[{status: 422, json: {/field: present}, is: deleted}, {status: 422, is: unknown}]",
    ]
    try await Rig.run(Configuration(store: store, route: route)) { rig in
      func send(_ content: String) async throws -> ReceivedResponse {
        try await rig.order(nil, body: #"{"orders":[{"id":"a","n":\#(content)},{"id":"b","n":\#(content)}]}"#)
      }
      rig.backend.on(
        "/v1/orders",
        inTurn: [Reply(422, body: #"{"field":"n"}"#), Reply(200, body: #"{"results":[1,2]}"#), Reply(422)])
      let refused = try await send("1")
      #expect(refused.status == 422 && refused.idempotencyStatus == "not-stored")
      let ran = try await send("2")
      #expect(ran.status == 200 && ran.idempotencyStatus == "batch; executed=2; replayed=0; refused=0")
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a shadowed route goes by the rules that read no body`() async throws {
    let rules = "[{status: 422, json: {/code: busy}, is: final}, {status: 422, is: deleted}]"
    try await Rig.run(Self.configuration(rules, ["shadow": "true"])) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(422, body: #"{"code":"busy"}"#) }
      #expect(try await rig.order("k").idempotencyStatus == "shadow; would=executed")
      // Another payload would run as well, once the record is gone.
      let other = try await Rig.repeated {
        $0.idempotencyStatus == "shadow; would=executed"
      } _: {
        try await rig.order("k", body: "{}")
      }
      #expect(other.status == 422)
    }
  }

  @Test func `of a malformed response no rule is guessed`() async throws {
    let rules = "[{status: 422, json: {/ran: present}, is: final}, {status: [4xx, 500], is: retry}]"
    try await Rig.run(Self.configuration(rules)) { rig in
      let malformed = { @Sendable (status: Int) in Reply(status, [("X", "a\u{1}b")], body: "{}") }
      rig.backend.on("/v1/orders") { _ in malformed(422) }
      expectRefused(try await rig.order("a"), 502, "outcome_unknown", retryable: false)
      rig.backend.on("/v1/orders", inTurn: [malformed(500), Reply(201)])
      expectRefused(try await rig.order("b"), 502, "upstream_unreachable", retryable: true)
      expectExecuted(try await rig.order("b"))
    }
  }

  @Test func `a backend that changes nothing when it fails may be called again`() async throws {
    try await Rig.run(Self.configuration("success_only")) { rig in
      for status in [301, 400, 404, 409, 500, 502, 504] {
        rig.backend.on("/v1/orders", inTurn: [Reply(status), Reply(201)])
        #expect(try await rig.order("k\(status)").idempotencyStatus == "not-stored", "\(status)")
        expectExecuted(try await rig.order("k\(status)"))
      }
    }
  }

  @Test func `a request that Stripe refuses before it runs may be corrected`() async throws {
    try await Rig.run(Self.configuration("stripe", ["profile": "stripe"])) { rig in
      let parameter = #"{"error":{"type":"invalid_request_error","param":"amount","message":"x"}}"#
      let declined = #"{"error":{"type":"card_error","param":"number","code":"card_declined"}}"#
      rig.backend.on("/v1/orders", inTurn: [Reply(400, body: parameter), Reply(402, body: declined)])
      #expect(try await rig.order("k").idempotencyStatus == "not-stored")
      expectExecuted(try await rig.order("k", body: #"{"amount":1}"#), 402)
      expectReplayed(try await rig.order("k", body: #"{"amount":1}"#), 402)
    }
  }
}
