import TestSupport
import Testing

/// No caller gets another caller's record.
struct CallerTests {
  @Test func `a key that is repeated under another caller is counted`() async throws {
    try await Rig.run { rig in
      let name = "semel_keys_under_other_caller_total"
      for caller in ["Bearer one", "Bearer one", "Bearer two", "Bearer two"] {
        _ = try await rig.order("retried", caller: caller)
      }
      _ = try await rig.order("other", caller: "Bearer three")
      try await rig.semel.counter(name, becomes: 1)
      #expect(rig.backend.runs(of: "retried") == 2)
      try await rig.semel.process.line(containing: "its only part is header:authorization")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `the same key of another caller is another intent`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let alice = try await rig.order("k", caller: "Bearer alice")
      let bob = try await rig.order("k", body: #"{"amount":5}"#, caller: "Bearer bob")
      expectExecuted(alice)
      expectExecuted(bob)
      #expect(alice.body != bob.body)
      expectReplayed(try await rig.order("k", caller: "Bearer alice"), of: alice)
      let ids = rig.backend.requests.map(\.requestID)
      #expect(Set(ids).count == 2)
    }
  }

  @Test func `a request without a definite caller is refused`() async throws {
    try await Rig.run { rig in
      let client = rig.semel.client
      let missing = try await client.send("POST", "/v1/orders", [("Idempotency-Key", "k")], body: "{}")
      expectRefused(missing, 401, "caller_unknown", retryable: false)
      #expect(missing["WWW-Authenticate"] == "Bearer")
      #expect(missing.problem?.detail.contains("the authorization header field") == true)
      let twice = try await rig.order("k", [("Authorization", "Bearer mallory")])
      expectRefused(twice, 401, "caller_unknown", retryable: false)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test(arguments: [
    "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=b", #"Digest username="a""#, "OAuth a=b",
    "Signature keyId=a", "DPoP token", "dpop token", "Hawk id=a", "Negotiate YII=", "NTLM TlR=",
    "SharedKey a:b",
    "AWS4-ECDSA-P256-SHA256 Credential=a", "GOOG4-HMAC-SHA256 Credential=a",
  ])
  func `credentials that may differ at each delivery are refused as caller`(authorization: String)
    async throws
  {
    try await Rig.run { rig in
      expectRefused(try await rig.order("k", caller: authorization), 401, "caller_unknown", retryable: false)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `known schemes, those of the route and bare tokens are callers`() async throws {
    let caller = "{parts: ['header:Authorization'], schemes: [GNAP]}"
    try await Rig.run(Configuration(route: ["caller": caller])) { rig in
      for authorization in ["bearer a", "Basic YTpi", "Token token=a", "ApiKey a", "gnap a", "a-bare-token"] {
        expectExecuted(try await rig.order("k", caller: authorization))
      }
      expectRefused(try await rig.order("k", caller: "Hawk a"), 401, "caller_unknown", retryable: false)
    }
  }

  @Test func `a caller's parts cannot be confused with one another`() async throws {
    let parts = "{parts: ['header:X-Tenant', 'header:X-User'], anonymous: allow}"
    try await Rig.run(Configuration(route: ["caller": parts])) { rig in
      func send(_ fields: [(String, String)]) async throws -> ReceivedResponse {
        try await rig.semel.client.send("POST", "/v1/orders", [("Idempotency-Key", "k")] + fields, body: "{}")
      }
      expectExecuted(try await send([("X-Tenant", "ab"), ("X-User", "c")]))
      expectExecuted(try await send([("X-Tenant", "a"), ("X-User", "bc")]))
      expectExecuted(try await send([("X-Tenant", "abc")]))
      expectExecuted(try await send([("X-User", "abc")]))
      expectExecuted(try await send([]))
      expectReplayed(try await send([("X-Tenant", "ab"), ("X-User", "c")]), 201)
      #expect(rig.backend.requests.count == 5)
    }
  }

  @Test func `a cookie may be the caller`() async throws {
    try await Rig.run(Configuration(route: ["caller": "{parts: ['cookie:session']}"])) { rig in
      func send(_ cookie: String) async throws -> ReceivedResponse {
        try await rig.semel.client.send(
          "POST", "/v1/orders", [("Idempotency-Key", "k"), ("Cookie", cookie)], body: "{}")
      }
      expectExecuted(try await send("theme=dark; session=1"))
      expectReplayed(try await send("session=1; theme=light"), 201)
      expectExecuted(try await send("session=2"))
      let missing = try await send("theme=dark")
      expectRefused(missing, 401, "caller_unknown", retryable: false)
      #expect(missing["WWW-Authenticate"] == nil)
      #expect(missing.problem?.detail.contains("the cookie session") == true)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `query and body may name the caller`(store: StoreKind) async throws {
    let caller = "{parts: ['query:tenant', 'json:/account/id']}"
    try await Rig.run(Configuration(store: store, route: ["caller": caller])) { rig in
      func order(_ path: String, _ body: String) async throws -> ReceivedResponse {
        try await rig.order("k", body: body, path: path)
      }
      let path = "/v1/orders?tenant=a"
      let first = try await order(path, #"{"account":{"id":"x"}}"#)
      expectExecuted(first)
      expectReplayed(try await order(path, #"{"account": {"id": "x"}}"#), of: first)
      expectExecuted(try await order(path, #"{"account":{"id":"y"}}"#))
      expectExecuted(try await order("/v1/orders?tenant=b", #"{"account":{"id":"x"}}"#))
      // Larger than what is read on the event loop.
      let note = String(repeating: "n", count: 100_000)
      expectExecuted(try await order(path, #"{"account":{"id":"z"},"note":"\#(note)"}"#))
      for (path, body) in [
        ("/v1/orders", #"{"account":{"id":"x"}}"#), (path, "{}"), (path, #"{"account":{"id":[]}}"#),
        (path, "x"),
        (path, #"{"note":"\#(note)"}"#),
      ] {
        expectRefused(try await order(path, body), 401, "caller_unknown", retryable: false)
      }
      #expect(rig.backend.requests.count == 4)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `all clients of a webhook are one caller`(store: StoreKind) async throws {
    let members = [
      "caller": "{shared: true}", "key": "{from: ['json:/id']}", "fingerprint": "{body: none}",
    ]
    try await Rig.run(Configuration(store: store, route: members)) { rig in
      func event(_ id: String, _ attempt: Int, signed: String) async throws -> ReceivedResponse {
        try await rig.semel.client.send(
          "POST", "/v1/hooks", [("Content-Type", "application/json"), ("Stripe-Signature", signed)],
          body: #"{"id":"\#(id)","attempt":\#(attempt)}"#)
      }
      let first = try await event("evt_1", 1, signed: "t=1")
      expectExecuted(first)
      expectReplayed(try await event("evt_1", 2, signed: "t=2"), of: first)
      expectExecuted(try await event("evt_2", 1, signed: "t=3"))
      #expect(rig.backend.requests.count == 2)
      let selection = ["--route", "orders", "--key", "evt_1", "--path", "/v1/hooks", "--method", "POST"]
      let shown = try await rig.key(["show", "--host", "orders.example"] + selection)
      #expect(shown.output.contains("completed"))
    }
  }

  @Test func `the address may be the caller`() async throws {
    try await Rig.run(Configuration(route: ["caller": "{parts: [address]}"])) { rig in
      let fields = [("Idempotency-Key", "k")]
      expectExecuted(try await rig.semel.client.send("POST", "/v1/orders", fields, body: "{}"))
      // Nobody is trusted to speak for another address.
      let spoofed = fields + [("X-Forwarded-For", "192.0.2.1")]
      expectReplayed(try await rig.semel.client.send("POST", "/v1/orders", spoofed, body: "{}"), 201)
      #expect(rig.backend.requests.count == 1)
    }
  }
}
