import Foundation
import TestSupport
import Testing

/// The meaning of the backend's complete responses for their records.
struct OutcomeTests {
  @Test(arguments: StoreKind.allCases)
  func `a final response is stored, and so is a backend's error`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      for status in [200, 202, 301, 400, 404, 409, 412, 422, 500, 501] {
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
      for status in [407, 408, 421, 423, 425, 503] {
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

  @Test(arguments: [502, 504])
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
        expectRefused(try await rig.order("k\(index)"), 409, "outcome_unknown", retryable: true)
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
    try await Rig.run(Configuration(route: ["retention": "1s", "remember": "2s"])) { rig in
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
      #expect(try await rig.semel.counter(exhausted, label: #"route="orders""#) == 1)
      // A last attempt that succeeds has used up nothing.
      rig.backend.on("/v1/orders", inTurn: [Reply(503), Reply(201)])
      #expect(try await rig.order("other").status == 503)
      expectExecuted(try await rig.order("other"))
      #expect(try await rig.semel.counter(exhausted) == 1)
    }
  }
}
