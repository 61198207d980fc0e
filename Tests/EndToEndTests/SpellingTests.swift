import TestSupport
import Testing

/// A variant spelling of a protected request is protected, too, or refused.
struct SpellingTests {
  private static let route = ["match": "{methods: [POST, PUT], path: /v1/orders}"]
  private static let fields = [("Authorization", "Bearer alice"), ("Idempotency-Key", "k")]

  @Test func `slashes and path parameters do not lose protection`() async throws {
    try await Rig.run(Configuration(route: Self.route)) { rig in
      let paths = [
        "/v1/orders", "/v1//orders", "/v1/orders/", "/v1/orders;x=1", "/v1;a/orders", "//v1/orders",
      ]
      for path in paths {
        expectExecuted(try await rig.order("k", path: path))
        expectReplayed(try await rig.order("k", path: path), 201)
      }
      // Each goes on as it was written, and is an endpoint of its own.
      #expect(rig.backend.requests.map(\.target) == paths)
      #expect(Set(rig.backend.requests.map(\.requestID)).count == paths.count)
      #expect(try await rig.order("k", path: "/v1/Orders").idempotencyStatus == "ignored")
      #expect(try await rig.order("k", path: "/x/..;/v1/orders").status == 400)
      #expect(rig.backend.requests.count == paths.count + 1)
    }
  }

  @Test func `a format suffix does not lose protection`() async throws {
    let exact = "{name: exact, match: {path: /exact}, spelling: exact, caller: {parts: [address]}}"
    try await Rig.run(Configuration(route: Self.route, firstRoutes: [exact])) { rig in
      let paths = [
        "/v1/orders.json", "/v1/orders.xml", "/v1/orders.js", "/v1/orders.html", "/v1/orders.csv",
        "/v1/orders.JSON/", "/v1/orders%2Ejson;x=1",
      ]
      for path in paths {
        expectExecuted(try await rig.order("k", path: path))
        expectReplayed(try await rig.order("k", path: path), 201)
      }
      #expect(rig.backend.requests.map(\.target) == paths)
      for path in [
        "/v1/orders.pdf", "/v1/orders.json.x", "/v1/orders/.json", "/exact.json", "/v1.json/orders",
      ] {
        #expect(try await rig.order("k", path: path).idempotencyStatus == "ignored", "\(path)")
      }
    }
  }

  @Test func `encoded characters do not lose protection`() async throws {
    try await Rig.run(Configuration(route: ["match": "{methods: [POST], path: '/v1/orders:cancel'}"])) {
      rig in
      let paths = ["/v1/orders:cancel", "/v1/orders%3Acancel", "/v1/orders%3acancel"]
      for path in paths.prefix(2) {
        expectExecuted(try await rig.order("k", path: path))
        expectReplayed(try await rig.order("k", path: path), 201)
      }
      // The letter case of an encoding is of no account anywhere.
      expectReplayed(try await rig.order("k", path: paths[2]), 201)
      #expect(rig.backend.requests.map(\.target) == Array(paths.prefix(2)))
    }
  }

  @Test func `a route may be strict about spelling, or not even about case`() async throws {
    let exact = "{name: exact, match: {path: /exact}, spelling: exact, caller: {parts: [address]}}"
    let caseless =
      "{name: caseless, match: {path: /any/Case}, spelling: caseless, caller: {parts: [address]}}"
    try await Rig.run(Configuration(firstRoutes: [exact, caseless])) { rig in
      expectExecuted(try await rig.order("k", path: "/exact"))
      #expect(try await rig.order("k", path: "/exact/").idempotencyStatus == "ignored")
      #expect(try await rig.order("k", path: "//exact").idempotencyStatus == "ignored")
      expectExecuted(try await rig.order("k", path: "/ANY/case/"))
      expectExecuted(try await rig.order("k", path: "/any/Case"))
      expectReplayed(try await rig.order("k", path: "/any/Case"), 201)
    }
  }

  @Test func `a method in another case is refused`() async throws {
    try await Rig.run(Configuration(route: Self.route)) { rig in
      for method in ["post", "Post", "pUT"] {
        let refused = try await rig.semel.client.send(method, "/v1/orders/", Self.fields, body: "{}")
        expectRefused(refused, 400, "bad_request", retryable: false)
      }
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `hosts and headers choose a route`() async throws {
    let match = "{path: /v1/orders, host: '*.example.com', headers: {X-Api-Version: '2'}}"
    try await Rig.run(Configuration(route: ["match": match])) { rig in
      let expected = [
        ("POST", "EU.example.com:8080", "2", "executed"), ("POST", "eu.example.com", "2", "replayed"),
        ("POST", "example.com", "2", "ignored"), ("POST", "eu.example.com", "1", "ignored"),
        // Without methods, all but those that change nothing.
        ("DELETE", "eu.example.com", "2", "executed"), ("GET", "eu.example.com", "2", "ignored"),
      ]
      for (method, host, version, status) in expected {
        let fields = Self.fields + [("Host", host), ("X-API-Version", version)]
        let response = try await rig.semel.client.send(method, "/v1/orders", fields, body: "{}")
        #expect(response.idempotencyStatus == status, "\(method) \(host) \(version)")
      }
    }
  }
}
