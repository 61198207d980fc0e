import TestSupport
import Testing

/// One path for matching, identity and forwarding.
struct PathTests {
  static let same: [(String, String)] = [
    ("/v1/./orders", "/v1/orders"), ("/v1/a/../orders", "/v1/orders"), ("/../../v1/orders", "/v1/orders"),
    ("/x/%2e%2e/v1/orders", "/v1/orders"), ("/v1/%6frders", "/v1/orders"), ("/v1/caf%c3%a9", "/v1/caf%C3%A9"),
    ("/v1/a%7eb", "/v1/a~b"), ("/v1/a%20b", "/v1/a%20b"), ("/v1/orders/", "/v1/orders/"),
    ("/v1//orders", "/v1//orders"),
  ]

  @Test(arguments: same)
  func `a path is brought into one form`(sent: String, forwarded: String) async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k", path: sent))
      #expect(rig.backend.requests.map(\.target) == [forwarded])
      expectReplayed(try await rig.order("k", path: forwarded), 201)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: ["/v1/a%2Fb", "/v1/a%2fb", "/v1/a%5Cb", #"/v1/a\b"#, "/v1/a%00b", "/v1/%zz", "/v1/%2"])
  func `a path that two servers may read differently is refused`(path: String) async throws {
    try await Rig.run { rig in
      let refused = try await rig.order("k", path: path)
      #expect(refused.status == 400)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `routes are tried in order, by method, path and host`() async throws {
    let first = [
      "{name: one, match: {methods: [POST], path: '/v1/orders/{id}'}, caller: {parts: ['header:X-One']}}",
      "{name: two, match: {host: two.example}, caller: {parts: ['header:X-Two']}}",
    ]
    try await Rig.run(Configuration(firstRoutes: first)) { rig in
      func send(_ method: String, _ path: String, _ field: String, host: String = "h") async throws
        -> ReceivedResponse
      {
        try await rig.semel.client.send(
          method, path, [("Idempotency-Key", "k"), (field, "a"), ("Host", host)], body: "{}")
      }
      expectExecuted(try await send("POST", "/v1/orders/7", "X-One"))
      expectExecuted(try await send("POST", "/any", "X-Two", host: "TWO.example:8080"))
      expectExecuted(try await send("PUT", "/v1/orders/7", "Authorization"))
      expectExecuted(try await send("POST", "/v1/orders/7/8", "Authorization"))
      expectExecuted(try await send("POST", "/v1", "Authorization"))
      #expect(try await send("POST", "/v1/orders/7", "X-Two").status == 401)
      #expect(try await send("POST", "/v2", "Authorization").idempotencyStatus == "ignored")
    }
  }

  @Test func `a request in absolute form is the same as in origin form`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k", path: "http://orders.example/v1/orders"))
      #expect(rig.backend.requests.map(\.target) == ["/v1/orders"])
      expectReplayed(try await rig.order("k"), 201)
    }
  }
}
