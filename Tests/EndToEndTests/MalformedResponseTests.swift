import TestSupport
import Testing

/// Responses of a backend that breaks a rule of HTTP behind its status line.
struct MalformedResponseTests {
  private static func malformed(_ status: Int) -> Reply { Reply(status, [("X", "a\u{1}b")], body: "x") }

  @Test(arguments: StoreKind.allCases)
  func `the status of a response that cannot be read is recorded, counted and explained once a minute`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let (name, label) = ("semel_upstream_malformed_responses_total", #"upstream="orders""#)
      #expect(try await rig.semel.counter(name, label: label) == 0)
      rig.backend.on("/v1/orders") { _ in Self.malformed(201) }
      for key in ["a", "b", "a", "b"] {
        let response = try await rig.order(key)
        expectRefused(response, 409, "response_not_kept", retryable: false)
        #expect(response.problem?.originalStatus == 201)
      }
      #expect(rig.backend.requests.count == 2)
      try await rig.semel.counter(name, label: label, becomes: 2)
      #expect(try await rig.semel.counter("semel_outcomes_lost_total") == 0)
      _ = try await rig.semel.process.lines(atLeast: 4) { $0.contains(#""status":409"#) }
      let lines = rig.semel.process.output.split(separator: "\n")
      let warnings = lines.filter { $0.contains("breaks a rule of HTTP") }
      #expect(warnings.count == 1, "\(warnings)")
      #expect(warnings.first?.contains("A field value holds a control character.") == true)
      #expect(warnings.first?.contains(#""upstream":"orders""#) == true)
      let entries = lines.filter { $0.contains(#""status":409"#) }
      #expect(entries.count { $0.contains(#""cause":"malformed""#) } == 2, "\(entries)")
    }
  }

  @Test func `by its status a response that cannot be read is retried, or its outcome is unknown`()
    async throws
  {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders", inTurn: [Self.malformed(429), Reply(201, body: "now")])
      expectRefused(try await rig.order("busy"), 502, "upstream_unreachable", retryable: true)
      expectExecuted(try await rig.order("busy"))
      // A 503 whose fields cannot be read may be an intermediary's.
      for status in [502, 503] {
        rig.backend.on("/v1/orders") { _ in Self.malformed(status) }
        expectRefused(try await rig.order("lost-\(status)"), 502, "outcome_unknown", retryable: false)
        expectRefused(try await rig.order("lost-\(status)"), 409, "outcome_unknown", retryable: false)
      }
      try await rig.semel.process.line(containing: #""cause":"malformed""#)
    }
  }

  @Test func `the status of a late response that cannot be read ends the unknown outcome`() async throws {
    let upstream = ["response_timeout": "500ms", "settle": "60s"]
    try await Rig.run(Configuration(upstream: upstream)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in
        var reply = Self.malformed(201)
        reply.gate = gate
        return reply
      }
      expectRefused(try await rig.order("k"), 504, "outcome_unknown", retryable: true)
      gate.open()
      let ended = try await rig.order("k") { $0.problem?.code == "response_not_kept" }
      #expect(ended.problem?.originalStatus == 201)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `of a batch only a refusal counts by its status alone`() async throws {
    try await Rig.run(BatchTests.configuration()) { rig in
      for (status, code) in [(400, "response_not_kept"), (201, "outcome_unknown")] {
        rig.backend.on("/v1/orders") { _ in Self.malformed(status) }
        let body = #"{"orders":[{"id":"a\#(status)"},{"id":"b\#(status)"}]}"#
        for _ in 0..<2 {
          let text = try await rig.order(nil, body: body).text
          #expect(text.contains(#""code":"\#(code)""#), "\(text)")
          #expect(text.contains(#""original_status":400"#) == (status == 400), "\(text)")
        }
      }
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a shadowed route states what the status of such a response would have led to`() async throws {
    try await Rig.run(Configuration(route: ["shadow": "true"])) { rig in
      rig.backend.on("/v1/orders", inTurn: [Self.malformed(201), Reply(201, body: "x")])
      #expect(try await rig.order("k").status == 502)
      let again = try await rig.order("k") { $0.idempotencyStatus == "shadow; would=response_not_kept" }
      #expect(again.status == 201)
    }
  }
}
