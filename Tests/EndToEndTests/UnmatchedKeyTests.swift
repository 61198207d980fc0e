import TestSupport
import Testing

/// Keys that nothing protects.
struct UnmatchedKeyTests {
  private static let routes = [
    "{name: open, match: {path: /open}, idempotency: off}",
    "{name: other, match: {path: /other}, key: {from: ['header:X-Request-Id']}, caller: {parts: [address]}}",
  ]
  private static let counter = "semel_unprotected_keys_total"

  @Test func `keys on unprotected routes are counted and logged`() async throws {
    try await Rig.run(Configuration(firstRoutes: Self.routes)) { rig in
      for _ in 0..<3 {
        #expect(try await rig.order("a-secret", path: "/open").idempotencyStatus == "ignored")
      }
      #expect(try await rig.order("a-secret", path: "/nowhere").idempotencyStatus == "ignored")
      // A key by the name that another route looks for.
      let named = try await rig.order(nil, path: "/open", [("X-Request-Id", "a-secret")])
      #expect(named.idempotencyStatus == "ignored")
      #expect(try await rig.order(nil, path: "/open").idempotencyStatus == nil)
      #expect(try await rig.order("", path: "/open").idempotencyStatus == nil)
      try await rig.semel.counter(Self.counter, label: #"route="open""#, becomes: 4)
      try await rig.semel.counter(Self.counter, label: #"route="(none)""#, becomes: 1)
      try await rig.semel.counter(Self.counter, becomes: 5)
      let text =
        "requests with an idempotency key match no protected route and are passed through unprotected"
      try await rig.semel.process.line(containing: #""route":"(none)""#)
      let lines = rig.semel.process.output.split(separator: "\n").filter { $0.contains(text) }
      #expect(lines.count == 2, "one for each route in a minute: \(lines)")
      #expect(lines.allSatisfy { $0.contains(#""level":"notice""#) && $0.contains(#""requests":"1""#) })
      #expect(lines.contains { $0.contains(#""paths":"POST /open 1""#) }, "\(lines)")
      #expect(lines.contains { $0.contains(#""paths":"POST /nowhere 1""#) }, "\(lines)")
      #expect(!rig.semel.process.output.contains("a-secret"))
    }
  }

  @Test func `the log has the shape of a path, and no id or token in it`() async throws {
    try await Rig.run { rig in
      let path = "/v9/shops/4711/reset/QWxhZGRpbjpvcGVuIHNlc2FtZQ/lines.json"
      #expect(try await rig.order("k", path: path).idempotencyStatus == "ignored")
      try await rig.semel.process.line(containing: #""paths":"POST /v9/shops/{id}/reset/{id}/lines.json 1""#)
      #expect(!rig.semel.process.output.contains("QWxhZGRpbjpvcGVu"))
    }
  }

  @Test(arguments: [false, true])
  func `a key where an optional route does not look for one protects nothing`(isRefused: Bool) async throws {
    let route = "{name: pay, match: {path: /pay}, profile: paypal, caller: {parts: [address]}}"
    var configuration = Configuration(firstRoutes: [route])
    if isRefused { configuration.top["unmatched_keys"] = "refuse" }
    try await Rig.run(configuration) { rig in
      let response = try await rig.order("k", path: "/pay")
      if isRefused {
        // In the form of its profile.
        #expect(response.status == 400 && response["X-Should-Retry"] == "false")
        #expect(rig.backend.requests.isEmpty)
      } else {
        #expect(response.idempotencyStatus == "ignored")
      }
      try await rig.semel.counter(Self.counter, label: #"route="pay""#, becomes: 1)
      let keyed = try await rig.order(nil, path: "/pay", [("PayPal-Request-Id", "k")])
      expectExecuted(keyed)
    }
  }

  @Test func `keys on unprotected routes are refused if configured, from the next request after a reload`()
    async throws
  {
    try await Rig.run(Configuration(firstRoutes: Self.routes)) { rig in
      #expect(try await rig.order("k", path: "/open").status == 201)
      try await rig.reload { $0.top["unmatched_keys"] = "refuse" }
      expectRefused(try await rig.order("k", path: "/open"), 400, "key_not_supported", retryable: false)
      expectRefused(try await rig.order("k", path: "/nowhere"), 400, "key_not_supported", retryable: false)
      #expect(try await rig.order(nil, path: "/open").status == 201)
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.count == 3)
      try await rig.semel.counter(Self.counter, becomes: 3)
      try await rig.semel.counter("semel_refusals_total", label: #"reason="key_not_supported""#, becomes: 2)
    }
  }
}
