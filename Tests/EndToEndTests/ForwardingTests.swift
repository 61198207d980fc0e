import TestSupport
import Testing

/// The requests as the backend reads them.
struct ForwardingTests {
  @Test func `a protected request carries its record's id and its attempt`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(503), Reply(201)])
      _ = try await rig.order("a-secret-key")
      _ = try await rig.order("a-secret-key")
      _ = try await rig.order("another-key")
      let requests = rig.backend.requests
      let ids = try requests.map { try #require($0.requestID) }
      #expect(ids[0] == ids[1])
      #expect(ids[0] != ids[2])
      #expect(!ids[0].contains("secret") && ids[0].count >= 16)
      #expect(requests.map(\.attempt) == ["1", "2", "1"])
    }
  }

  @Test func `a client's own Idempotency-Request-Id and attempt are dropped`() async throws {
    try await Rig.run { rig in
      let names = [
        "Idempotency-Request-Id", "Idempotency-Attempt", "X-Forwarded-For", "X-Forwarded-Proto",
        "X-Forwarded-Host",
      ]
      let spoofed = names.flatMap { name in
        [name, name.lowercased(), name.replacing("-", with: "_")].map { ($0, "spoofed") }
      }
      expectExecuted(try await rig.order("k", spoofed))
      #expect(try await rig.order(nil, path: "/open", spoofed).status == 201)
      for request in rig.backend.requests {
        #expect(request.fields.allSatisfy { $0.value != "spoofed" }, "\(request.fields)")
        #expect(request["X-Forwarded-For"] == "127.0.0.1")
        #expect(request["X-Forwarded-Proto"] == "http")
        #expect(request["X-Forwarded-Host"] == "orders.example")
        #expect(request["Via"]?.hasPrefix("1.1 ") == true)
        #expect(request["Host"] == "orders.example")
      }
      #expect(rig.backend.requests[0].attempt == "1")
      #expect(rig.backend.requests[1].requestID == nil)
      #expect(rig.backend.requests[1].attempt == nil)
    }
  }

  @Test(arguments: ["/v1/orders", "/open"])
  func `hop-by-hop fields are not forwarded`(path: String) async throws {
    try await Rig.run { rig in
      let hop = [
        ("Connection", "X-Hop, keep-alive"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5"), ("TE", "trailers"),
        ("Proxy-Connection", "keep-alive"), ("Proxy-Authorization", "Basic YTpi"), ("X-End", "kept"),
      ]
      #expect(try await rig.order("k", path: path, hop).status == 201)
      let request = try #require(rig.backend.requests.first)
      for name in ["X-Hop", "Keep-Alive", "TE", "Proxy-Connection", "Proxy-Authorization"] {
        #expect(request[name] == nil, "\(name)")
      }
      #expect(request["X-End"] == "kept")
      #expect(request["Idempotency-Key"] == "k")
      #expect(request["Authorization"] == "Bearer alice")
      #expect(request["Connection"]?.lowercased().contains("x-hop") != true)
      #expect(request["Expect"] == nil)
      #expect(request["User-Agent"] == nil)
      #expect(request["Accept"] == nil)
      #expect(request["Accept-Encoding"] == (path == "/open" ? nil : "identity"))
    }
  }

  @Test(arguments: [
    "Idempotency-Key", "Authorization", "close, idempotency-key", "Content-Type", "X, content-encoding",
    "X-Counted",
    "x-version", "X-HTTP-Method",
  ])
  func `Connection may not name a field that identifies a request`(named: String) async throws {
    let route = [
      "fingerprint": "{headers: [X-Counted]}",
      "match": "{methods: [POST], path: '/v1/**', headers: {X-Version: '2'}}",
    ]
    try await Rig.run(Configuration(route: route)) { rig in
      let refused = try await rig.order("k", [("X-Version", "2"), ("Connection", named)])
      expectRefused(refused, 400, "bad_request", retryable: false)
      #expect(rig.backend.requests.isEmpty)
      expectExecuted(try await rig.order("k", [("X-Version", "2"), ("Connection", "close, X-Other")]))
      // Without a record, it is the client's own affair.
      #expect(try await rig.order(nil, path: "/open", [("Connection", named)]).status == 201)
    }
  }

  @Test(arguments: ["/v1/orders", "/open"])
  func `fields with an underscore are not forwarded`(path: String) async throws {
    let fields = [
      ("Idempotency_Key", "x"), ("Transfer_Encoding", "chunked"), ("Idempotency_Attempt", "9"),
      ("X_Other", "1"),
      ("X-Forwarded_For", "6.6.6.6"), ("X_Real_IP", "6.6.6.6"), ("_", "1"),
    ]
    try await Rig.run { rig in
      #expect(try await rig.order("k", path: path, fields + [("X-Kept", "1")]).status == 201)
      let names = try #require(rig.backend.requests.first).fields.map(\.name)
      #expect(!names.contains { $0.contains("_") }, "\(names)")
      #expect(names.contains("X-Kept"))
      try await rig.reload { $0.top["underscores"] = "pass" }
      #expect(try await rig.order("l", path: path, fields).status == 201)
      let kept = try #require(rig.backend.requests.last).fields.map(\.name).filter { $0.contains("_") }
      #expect(kept == ["Idempotency_Key", "Transfer_Encoding", "X_Other", "_"])
    }
  }

  @Test func `Accept-Encoding is identity for responses that are recorded`()
    async throws
  {
    try await Rig.run { rig in
      let gzip = [("Accept-Encoding", "gzip")]
      expectExecuted(try await rig.order("a", gzip))
      #expect(try await rig.order(nil, path: "/open", gzip).status == 201)
      #expect(rig.backend.requests.map { $0["Accept-Encoding"] } == ["identity", "gzip"])
      // One that is coded all the same is replayed as it is.
      rig.backend.on("/v1/coded") { _ in Reply(201, [("Content-Encoding", "gzip")], body: "as it came") }
      let first = try await rig.order("b", path: "/v1/coded", gzip)
      let again = try await rig.order("b", path: "/v1/coded")
      expectReplayed(again, of: first)
      #expect(again["Content-Encoding"] == "gzip" && again.text == "as it came")
      try await rig.reload { $0.route["content_coding"] = "pass" }
      expectExecuted(try await rig.order("c", gzip))
      expectExecuted(try await rig.order("d"))
      #expect(rig.backend.requests.suffix(2).map { $0["Accept-Encoding"] } == ["gzip", nil])
    }
  }

  @Test func `an upgrade is refused before anything is claimed`() async throws {
    try await Rig.run { rig in
      let refused = try await rig.order("k", [("Connection", "Upgrade"), ("Upgrade", "websocket")])
      #expect(refused.status == 501)
      #expect(rig.backend.requests.isEmpty)
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map(\.attempt) == ["1"])
    }
  }

  @Test func `the backend gets the Host that its settings give`() async throws {
    try await Rig.run(Configuration(upstream: ["host": "upstream"])) { rig in
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests[0]["Host"] == "127.0.0.1:\(rig.backend.port)")
      #expect(rig.backend.requests[0]["X-Forwarded-Host"] == "orders.example")
    }
    try await Rig.run(Configuration(upstream: ["host": "internal.example"])) { rig in
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests[0]["Host"] == "internal.example")
    }
  }

  @Test func `methods, queries and bodies are forwarded unchanged`() async throws {
    try await Rig.run { rig in
      for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"] {
        let path = "/open/\(method)?a=%2f&b=c+d&a="
        #expect(try await rig.semel.client.send(method, path).status == 201)
        let request = try #require(rig.backend.requests.last)
        #expect(request.method == method)
        #expect(request.target == path)
        #expect(request["Content-Length"] == (["PUT", "PATCH"].contains(method) ? "0" : nil), "\(method)")
        #expect(request["Transfer-Encoding"] == nil, "\(method)")
      }
      let binary = String(decoding: [0x7B, 0x00, 0x0D, 0x0A, 0x7D], as: UTF8.self)
      #expect(try await rig.order(nil, body: binary, path: "/open").status == 201)
      #expect(rig.backend.requests.last?.text == binary)
      #expect(try await rig.order(nil, body: "", path: "/open").status == 201)
      #expect(rig.backend.requests.last?["Content-Length"] == "0")
    }
  }
}
