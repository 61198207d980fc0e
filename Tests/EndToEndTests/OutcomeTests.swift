import Foundation
import TestSupport
import Testing

/// The meaning of the backend's complete responses for their records.
struct OutcomeTests {
  @Test(arguments: StoreKind.allCases)
  func `a final response is stored, and so is a backend's error`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      for status in [200, 202, 301, 400, 404, 409, 422, 500, 501] {
        rig.backend.on("/v1/orders") { Reply(status, body: #"{"run":\#($0.number)}"#) }
        let first = try await rig.order("k\(status)")
        expectExecuted(first, status)
        expectReplayed(try await rig.order("k\(status)"), of: first)
        #expect(rig.backend.runs(of: "k\(status)") == 1)
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a retryable response is passed on and the next delivery runs`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      for status in [307, 308, 407, 408, 412, 419, 421, 423, 425, 428, 503, 521, 530] {
        rig.backend.on("/v1/orders", inTurn: [Reply(status, body: "not now"), Reply(201)])
        let key = "k\(status)"
        let first = try await rig.order(key)
        #expect(first.status == status)
        #expect(first.idempotencyStatus == "not-stored", "\(status)")
        #expect(first.text == "not now")
        expectExecuted(try await rig.order(key))
        expectReplayed(try await rig.order(key), 201)
        let runs = rig.backend.requests.filter { $0["Idempotency-Key"] == key }
        #expect(runs.map(\.attempt) == ["1", "2"], "\(status)")
        #expect(Set(runs.map(\.requestID)).count == 1)
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a response to a refused stranger leaves no record`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      for status in [401, 403, 429] {
        rig.backend.on("/v1/orders", inTurn: [Reply(status), Reply(201)])
        let key = "k\(status)"
        #expect(try await rig.order(key).idempotencyStatus == "not-stored")
        // Not even the fingerprint is kept: another payload runs, as the first attempt.
        expectExecuted(try await rig.order(key, body: "{}"))
        #expect(rig.backend.requests.filter { $0["Idempotency-Key"] == key }.map(\.attempt) == ["1", "1"])
      }
    }
  }

  @Test(arguments: [502, 504, 520, 524, 527])
  func `an intermediary's 502 or 504 is an unknown outcome`(status: Int) async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders") { _ in Reply(status, body: "gateway") }
      let first = try await rig.order("k")
      #expect(first.status == status)
      #expect(first.idempotencyStatus == "unknown")
      #expect(first.text == "gateway")
      let second = try await rig.order("k")
      #expect(second.status == 409)
      #expect(second.problem?.code == "outcome_unknown")
      #expect(rig.backend.requests.count == 1)
    }
  }

  /// (The signs of an intermediary in a 503, its text, and the label.)
  @Test(
    arguments: [
      (
        [("Server", "envoy")],
        "upstream connect error or disconnect/reset before headers. reset reason: connection termination",
        "unknown"
      ),
      ([("Server", "istio-envoy")], "no healthy upstream", "not-stored"),
      ([("Via", "1.1 vegur")], "", "unknown"), ([("X-Varnish", "3")], "Backend fetch failed", "unknown"),
      ([("CF-RAY", "8a1-FRA"), ("Retry-After", "1")], "", "not-stored"),
      ([("Server", "nginx")], "", "not-stored"),
    ] as [([(String, String)], String, String)])
  func `a 503 is judged by who has made it`(fields: [(String, String)], text: String, label: String)
    async throws
  {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders") { $0.number == 1 ? Reply(503, fields, body: text) : Reply(201) }
      let first = try await rig.order("k")
      #expect(first.status == 503 && first.text == text)
      #expect(first.idempotencyStatus == label)
      let second = try await rig.order("k")
      if label == "unknown" {
        expectRefused(second, 409, "outcome_unknown", retryable: false)
      } else {
        expectExecuted(second)
      }
      #expect(rig.backend.requests.count == (label == "unknown" ? 1 : 2))
    }
  }

  @Test func `a backend's own table of keys may have a request in progress that came beside Semel`()
    async throws
  {
    try await Rig.run(Configuration(route: ["behind": "own_keys"])) { rig in
      rig.backend.on(
        "/v1/orders", inTurn: [Reply(409, body: "in progress"), Reply(409, body: "no stock")])
      let first = try await rig.order("k")
      #expect(first.status == 409 && first.text == "in progress" && first.idempotencyStatus == "not-stored")
      let second = try await rig.order("k")
      #expect(second.status == 409 && second.text == "no stock" && second.idempotencyStatus == "executed")
      #expect(try await rig.order("k").idempotencyStatus == "replayed")
      #expect(rig.backend.requests.count == 2)
    }
  }

  /// Refusals of duplicates by a unique column: Rails, Django, and where nobody catches the error.
  @Test(arguments: StoreKind.allCases, [422, 400, 500])
  func `a duplicate's refusal after a lost outcome is no outcome`(store: StoreKind, status: Int) async throws
  {
    let configuration = Configuration(
      store: store, upstream: ["settle": "0s"], route: ["on_unknown": "retry"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders", inTurn: [.unanswered, Reply(status, body: "taken"), Reply(201)])
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: true)
      let second = try await rig.order("k")
      #expect(second.status == status && second.text == "taken" && second.idempotencyStatus == "unknown")
      let third = try await rig.order("k")
      expectExecuted(third)
      expectReplayed(try await rig.order("k"), of: third)
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2", "3"])
    }
  }

  @Test func `a home-grown table's 409 in progress is not recorded`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(409, [("Retry-After", "1")]), Reply(201)])
      let first = try await rig.order("k")
      #expect(first.status == 409 && first.idempotencyStatus == "not-stored" && first["Retry-After"] == "1")
      expectExecuted(try await rig.order("k"))
    }
  }

  @Test func `a webhook is delivered until it was taken`() async throws {
    let route = ["profile": "webhook", "caller": "{shared: true}"]
    try await Rig.run(Configuration(route: route)) { rig in
      let replies = [500, 400, 404, 301, 502].map { Reply($0) }
      rig.backend.on("/v1/orders", inTurn: replies + [Reply(204)])
      func deliver() async throws -> ReceivedResponse { try await rig.order(nil, body: #"{"id":"evt_1"}"#) }
      for status in [500, 400, 404, 301, 502] {
        let response = try await deliver()
        #expect(response.status == status && response.idempotencyStatus == "not-stored")
      }
      expectExecuted(try await deliver(), 204)
      expectReplayed(try await deliver(), 204)
    }
  }

  @Test func `a persisted query that the server lacks may be followed by its document`() async throws {
    let route = ["match": "{methods: [POST], path: /v1/orders, graphql: mutation}"]
    try await Rig.run(Configuration(route: route)) { rig in
      let missing = #"{"errors":[{"message":"x","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}"#
      rig.backend.on("/v1/orders", inTurn: [Reply(200, body: missing), Reply(200, body: #"{"data":{}}"#)])
      let first = try await rig.order("k", body: #"{"extensions":{"persistedQuery":{"sha256Hash":"1"}}}"#)
      #expect(first.text == missing && first.idempotencyStatus == "not-stored")
      let whole = #"{"query":"mutation M { pay }","extensions":{"persistedQuery":{"sha256Hash":"1"}}}"#
      let second = try await rig.order("k", body: whole)
      expectExecuted(second, 200)
      expectReplayed(try await rig.order("k", body: whole), of: second)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `deliveries that were not sent do not count towards max_attempts`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, upstream: ["connect_retries": "0"], route: ["max_attempts": "3"])
    try await Rig.run(configuration, backendIsUp: false) { rig in
      for _ in 0..<4 {
        expectRefused(try await rig.order("k"), 502, "upstream_unreachable", retryable: true)
      }
      try await rig.backend.start()
      rig.backend.on("/v1/orders") { Reply(503, body: "run \($0.number)") }
      for label in ["not-stored", "not-stored", "executed"] {
        #expect(try await rig.order("k").idempotencyStatus == label)
      }
      #expect(rig.backend.requests.map(\.attempt) == ["5", "6", "7"])
      let last = try await rig.order("k")
      expectReplayed(last, 503)
      #expect(last.text == "run 3")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `rejections neither count towards max_attempts nor become the outcome`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["max_attempts": "3"])) { rig in
      let statuses = [503, 429, 429, 401, 503, 403, 503]
      rig.backend.on("/v1/orders", inTurn: statuses.map { Reply($0) })
      for (index, status) in statuses.enumerated() {
        let response = try await rig.order("k")
        #expect(response.status == status)
        // The third 503 is the third attempt that counts.
        let isLast = index == statuses.count - 1
        #expect(response.idempotencyStatus == (isLast ? "executed" : "not-stored"), "attempt \(index + 1)")
      }
      expectReplayed(try await rig.order("k"), 503)
      #expect(rig.backend.requests.map(\.attempt) == statuses.indices.map { "\($0 + 1)" })
    }
  }

  /// (Whether the client's retry can get the response, the reply, and the reason.)
  @Test(
    arguments: [
      (Reply(201, body: "made", framing: .close), "no_length"),
      (Reply(201, [], content: .filler(2000), framing: .chunked), "too_large"),
      (Reply(201, [], content: .filler(2000)), "too_large"), (Reply(201, body: "made"), nil),
    ] as [(Reply, String?)])
  func `a response that cannot be kept is announced at once`(reply: Reply, why: String?) async throws {
    try await Rig.run(Configuration(route: ["max_response_body": "1KiB"])) { rig in
      rig.backend.on("/v1/orders") { _ in reply }
      let label = why == nil ? "executed" : "executed; kept=no"
      for key in ["a", "b"] {
        let first = try await rig.order(key)
        #expect(first.status == 201 && first.idempotencyStatus == label)
        let again = try await rig.order(key)
        #expect(again.status == (why == nil ? 201 : 409))
      }
      let count = try await rig.semel.counter(
        "semel_responses_not_kept_total", label: #"route="orders",why="\#(why ?? "no_length")""#)
      #expect(count == (why == nil ? 0 : 2))
      _ = try await rig.semel.process.lines(atLeast: 4) { $0.contains(#""status":"#) }
      let warnings = rig.semel.process.output.split(separator: "\n").filter {
        $0.contains("recorded without their bodies")
      }
      #expect(warnings.count == (why == nil ? 0 : 1))
    }
  }

  @Test func `a route has classes of its own, the most specific pattern first`() async throws {
    let outcomes = "{retry: [5xx], final: [503], unknown: [404]}"
    try await Rig.run(Configuration(route: ["outcomes": outcomes])) { rig in
      for (status, expected) in [
        (500, "not-stored"), (599, "not-stored"), (404, "unknown"), (503, "executed"),
      ] {
        rig.backend.on("/v1/orders") { _ in Reply(status) }
        let response = try await rig.order("k\(status)")
        #expect(response.idempotencyStatus == expected, "\(status)")
      }
    }
  }

  @Test func `a backend's own 503 is unknown if the route lists it so`() async throws {
    try await Rig.run(Configuration(route: ["outcomes": "{unknown: [503]}"])) { rig in
      for (key, fields) in [("bare", []), ("later", [("Retry-After", "1")])] {
        rig.backend.on("/v1/orders", inTurn: [Reply(503, fields, body: "still at it"), Reply(201)])
        let first = try await rig.order(key)
        #expect(first.status == 503 && first.text == "still at it" && first.idempotencyStatus == "unknown")
        expectRefused(try await rig.order(key), 409, "outcome_unknown", retryable: false)
        #expect(rig.backend.runs(of: key) == 1)
      }
    }
  }

  @Test func `a backend steers the outcome, and its field is removed`() async throws {
    try await Rig.run { rig in
      for (status, word, expected) in [
        (500, "retry", "not-stored"), (200, "unknown", "unknown"), (503, "final", "executed"),
      ] {
        rig.backend.on("/v1/orders") { _ in Reply(status, [("Idempotency-Outcome", word)]) }
        let response = try await rig.order("k\(status)")
        #expect(response.status == status)
        #expect(response.idempotencyStatus == expected, "\(status) \(word)")
        #expect(response["Idempotency-Outcome"] == nil)
      }
      expectReplayed(try await rig.order("k503"), 503)
      #expect(try await rig.order("k503")["Idempotency-Outcome"] == nil)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `outcomes that contradict each other are unknown, and nothing runs again`(store: StoreKind)
    async throws
  {
    try await Rig.run(Configuration(store: store)) { rig in
      for (index, words) in [["final", "retry"], ["retry", "final"], ["retry, final"]].enumerated() {
        rig.backend.on("/v1/orders") { _ in Reply(503, words.map { ("Idempotency-Outcome", $0) }) }
        #expect(try await rig.order("k\(index)").idempotencyStatus == "unknown", "\(words)")
        expectRefused(try await rig.order("k\(index)"), 409, "outcome_unknown", retryable: false)
      }
      rig.backend.on("/v1/orders") { _ in
        Reply(503, [("Idempotency-Outcome", "final"), ("Idempotency-Outcome", "final")])
      }
      expectExecuted(try await rig.order("same"), 503)
      expectReplayed(try await rig.order("same"), 503)
      #expect(rig.backend.requests.count == 4)
    }
  }

  @Test func `a retention that is not a number of seconds is ignored`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, [("Idempotency-Retention", "-5")]) }
      let first = try await rig.order("k")
      let replay = try await rig.order("k")
      expectReplayed(replay, of: first)
      let expires = try #require(replay.date("Idempotency-Expires"))
      let recordedAt = try #require(replay.date("Idempotency-Recorded-At"))
      #expect(abs(expires.timeIntervalSince(recordedAt) - 24 * 3600) <= 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a backend sets the retention of its response`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, [("Idempotency-Retention", "1")]) }
      let first = try await rig.order("k")
      expectExecuted(first)
      #expect(first["Idempotency-Retention"] == nil)
      let expired = try await rig.order("k") { $0.status == 409 }
      expectRefused(expired, 409, "key_expired", retryable: false)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a backend cannot raise the retention above remember`() async throws {
    try await Rig.run(Configuration(route: ["retention": "1s", "remember": "6s"])) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, [("Idempotency-Retention", "999999999")]) }
      expectExecuted(try await rig.order("k"))
      expectReplayed(try await rig.order("k"), 201)
      let again = try await rig.order("k") { $0.idempotencyStatus != "replayed" }
      expectExecuted(again)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `Semel's own fields do not come from a backend`() async throws {
    try await Rig.run(Configuration(route: ["idempotency": "optional"])) { rig in
      let own = [
        "Idempotency-Status", "Idempotent-Replayed", "Idempotency-Recorded-At", "Idempotency-Expires",
        "Idempotency-Outcome", "Idempotency-Retention",
      ]
      for path in ["/v1/orders", "/elsewhere"] {
        rig.backend.on(path) { _ in Reply(200, own.map { ($0, "spoofed") } + [("X-Other", "1")]) }
        let passed = try await rig.order(nil, path: path)
        #expect(passed["X-Other"] == "1")
        for name in own { #expect(passed[name] == nil, "\(name) on \(path)") }
      }
      let executed = try await rig.order("k")
      for name in own { #expect(executed[name] != "spoofed", "\(name)") }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `at max_attempts the last response is final, and counted`(store: StoreKind) async throws {
    let exhausted = "semel_attempts_exhausted_total"
    try await Rig.run(Configuration(store: store, route: ["max_attempts": "2"])) { rig in
      rig.backend.on("/v1/orders") { Reply(503, body: "run \($0.number)") }
      #expect(try await rig.order("k").text == "run 1")
      #expect(try await rig.semel.counter(exhausted) == 0)
      #expect(try await rig.order("k").text == "run 2")
      let third = try await rig.order("k")
      expectReplayed(third, 503)
      #expect(third.text == "run 2")
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
      try await rig.semel.counter(exhausted, label: #"route="orders""#, becomes: 1)
      // A last attempt that succeeds has used up nothing.
      rig.backend.on("/v1/orders", inTurn: [Reply(503), Reply(201)])
      #expect(try await rig.order("other").status == 503)
      expectExecuted(try await rig.order("other"))
      try await rig.semel.counter(exhausted, becomes: 1)
    }
  }
}
