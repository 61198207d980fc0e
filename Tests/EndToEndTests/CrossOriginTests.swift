import TestSupport
import Testing

/// Requests by pages of other origins (CORS).
struct CrossOriginTests {
  private static let shop = "https://shop.example"
  private static let list = "{origins: ['https://shop.example', 'https://app.example']}"
  private static let exposed =
    "Idempotency-Status, Idempotent-Replayed, Idempotency-Recorded-At, Idempotency-Expires, Retry-After, X-Should-Retry"

  /// A backend that lets `allowed` read its responses, and responds to preflights itself.
  private static func serve(_ rig: Rig, allowing allowed: String?, _ more: [(String, String)] = []) {
    let origin = allowed.map { [("Access-Control-Allow-Origin", $0)] } ?? []
    rig.backend.on("/v1/orders") { request in
      guard request.method == "OPTIONS" else {
        return Reply(201, origin + more, body: #"{"order":\#(request.number)}"#)
      }
      let fields = [
        ("Access-Control-Allow-Methods", "POST"), ("Access-Control-Allow-Headers", "content-type"),
      ]
      return Reply(200, origin + more + fields, body: "ok")
    }
  }

  private static func preflight(
    _ rig: Rig, at path: String = "/v1/orders", method: String = "POST", origin: String = shop,
    announcing names: String? = nil, _ more: [(String, String)] = []
  ) async throws -> ReceivedResponse {
    let announced = names.map { [("Access-Control-Request-Headers", $0)] } ?? []
    return try await rig.semel.client.send(
      "OPTIONS", path, [("Origin", origin), ("Access-Control-Request-Method", method)] + announced + more)
  }

  @Test(arguments: StoreKind.allCases)
  func `a preflight is the backend's, with Semel's fields allowed`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["cors": "true"])) { rig in
      Self.serve(rig, allowing: Self.shop)
      let names = "authorization,content-type,idempotency-key,prefer"
      let response = try await Self.preflight(rig, announcing: names)
      #expect(response.status == 200 && response.text == "ok")
      #expect(response.values("Access-Control-Allow-Headers") == ["content-type", "idempotency-key, prefer"])
      #expect(response["Access-Control-Allow-Methods"] == "POST")
      #expect(response["Access-Control-Expose-Headers"] == nil && response.idempotencyStatus == nil)
      let request = rig.backend.requests[0]
      #expect(request["Access-Control-Request-Headers"] == "authorization,content-type")
      #expect(request["Origin"] == Self.shop && request.attempt == nil && request.requestID == nil)

      // Nothing is left on which the backend would have to decide.
      #expect(try await Self.preflight(rig, announcing: "Idempotency-Key").status == 200)
      #expect(rig.backend.requests[1]["Access-Control-Request-Headers"] == nil)
    }
  }

  @Test func `where the backend allows no page, Semel allows nothing`() async throws {
    for cors in ["true", Self.list] {
      try await Rig.run(Configuration(route: ["cors": cors])) { rig in
        Self.serve(rig, allowing: nil)
        let response = try await Self.preflight(rig, announcing: "idempotency-key")
        #expect(response["Access-Control-Allow-Headers"] == "content-type")
        for delivery in ["executed", "replayed"] {
          let order = try await rig.order("k", [("Origin", Self.shop)])
          #expect(order.idempotencyStatus == delivery)
          #expect(
            !order.fields.contains { $0.name.lowercased().hasPrefix("access-control") }, "\(order.fields)")
        }
      }
    }
  }

  @Test func `a preflight is never protected, and a keyed OPTIONS is`() async throws {
    let route = ["match": "{methods: [POST, OPTIONS], path: '/v1/**'}"]
    try await Rig.run(Configuration(route: route)) { rig in
      let response = try await Self.preflight(rig, announcing: "idempotency-key")
      #expect(response.status == 201 && response.idempotencyStatus == nil)
      // Without the setting a preflight stays as it is.
      #expect(rig.backend.requests[0]["Access-Control-Request-Headers"] == "idempotency-key")
      expectRefused(
        try await rig.semel.client.send("OPTIONS", "/v1/orders", Rig.fields(key: nil)), 400, "key_missing",
        retryable: false)
      let key = Rig.fields(key: "k")
      expectExecuted(try await Self.preflight(rig, key))
      expectReplayed(try await Self.preflight(rig, key), 201)
      let override = [("X-HTTP-Method-Override", "POST")]
      expectRefused(try await Self.preflight(rig, override), 400, "bad_request", retryable: false)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an OPTIONS whose key has several parts is protected`(store: StoreKind) async throws {
    let route = [
      "match": "{methods: [OPTIONS, POST], path: '/v1/**'}", "key": "{from: [['header:X-A', 'header:X-B']]}",
    ]
    try await Rig.run(Configuration(store: store, route: route)) { rig in
      let caller = Rig.fields(key: nil)
      let parts = [("X-A", "1"), ("X-B", "2")]
      expectExecuted(try await Self.preflight(rig, at: "/v1/orders?k=1", caller + parts))
      expectReplayed(try await Self.preflight(rig, at: "/v1/orders?k=1", caller + parts), 201)
      let incomplete = try await Self.preflight(rig, at: "/v1/orders?k=1", caller + [("X-A", "1")])
      expectRefused(incomplete, 400, "key_missing", retryable: false)
      #expect(rig.backend.requests.count == 1)
      let announced = try await Self.preflight(rig, announcing: "x-a,x-b")
      #expect(announced.status == 201 && announced.idempotencyStatus == nil)
    }
  }

  @Test func `a preflight goes to the upstream of the request that it announces`() async throws {
    let other = OrdersBackend()
    try await other.start()
    var configuration = Configuration(route: ["upstream": "other", "match": "{headers: {X-Version: '2'}}"])
    configuration.top["upstreams"] =
      "{orders: {url: 'http://127.0.0.1:1'}, other: {url: 'http://127.0.0.1:\(other.port)'}}"
    try await Rig.run(configuration) { rig in
      let versioned = try await Self.preflight(rig, announcing: "x-version,idempotency-key")
      #expect(versioned.status == 201)
      // Without that field the announced request meets no route.
      let other = try await Self.preflight(rig)
      #expect(other.problem?.code == "no_route")
    }
    #expect(other.requests.count == 1)
    try await other.stop()
  }

  @Test(arguments: StoreKind.allCases)
  func `Semel's fields are exposed where the backend lets a page read`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["cors": "true"])) { rig in
      Self.serve(rig, allowing: "*")
      for delivery in ["executed", "replayed"] {
        let response = try await rig.order("k", [("Origin", Self.shop)])
        #expect(response.idempotencyStatus == delivery)
        #expect(response["Access-Control-Allow-Origin"] == "*")
        #expect(response["Access-Control-Expose-Headers"] == Self.exposed)
      }
      // Without origins Semel's own responses stay closed.
      let refused = try await rig.order("k", body: "{}", [("Origin", Self.shop)])
      expectRefused(refused, 409, "payload_mismatch", retryable: false)
      #expect(refused["Access-Control-Allow-Origin"] == nil && refused["Vary"] == nil)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `refusals can be read by the listed origins alone`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["cors": Self.list])) { rig in
      for (key, code) in [("k,", "key_invalid"), (nil, "key_missing")] as [(String?, String)] {
        let refused = try await rig.order(key, [("Origin", Self.shop)])
        expectRefused(refused, 400, code, retryable: false)
        #expect(refused["Access-Control-Allow-Origin"] == Self.shop)
        #expect(refused["Access-Control-Expose-Headers"] == Self.exposed)
        #expect(refused["Access-Control-Allow-Credentials"] == nil)
        #expect(refused["Vary"] == "Origin")
      }
      for fields in [
        [("Origin", "https://evil.example")], [], [("Origin", "null")],
        [("Origin", Self.shop), ("Origin", Self.shop)],
      ] as [[(String, String)]] {
        let refused = try await rig.order(nil, fields)
        expectRefused(refused, 400, "key_missing", retryable: false)
        #expect(refused["Access-Control-Allow-Origin"] == nil && refused["Vary"] == "Origin")
      }
    }
  }

  @Test func `refusals before a route is chosen can be read, too`() async throws {
    let configuration = Configuration(
      route: ["cors": "{origins: ['https://shop.example'], credentials: true}", "max_request_body": "1KiB"])
    try await Rig.run(configuration) { rig in
      let late = try await rig.order("k", [("Origin", Self.shop), ("X-HTTP-Method-Override", "PUT, PATCH")])
      expectRefused(late, 400, "bad_request", retryable: false)
      let large = try await rig.order("k", body: String(repeating: "x", count: 2000), [("Origin", Self.shop)])
      expectRefused(large, 413, "request_too_large", retryable: false)
      let spelled = try await rig.semel.client.send(
        "post", "/v1/orders", Rig.fields(key: "k") + [("Origin", Self.shop)])
      expectRefused(spelled, 400, "bad_request", retryable: false)
      for refused in [late, large, spelled] {
        #expect(refused["Access-Control-Allow-Origin"] == Self.shop)
        #expect(refused["Access-Control-Allow-Credentials"] == "true")
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a replay carries the origin of the page that it is for`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["cors": Self.list])) { rig in
      Self.serve(rig, allowing: Self.shop, [("Access-Control-Allow-Credentials", "true")])
      let first = try await rig.order("k", [("Origin", Self.shop)])
      expectExecuted(first)
      #expect(first["Access-Control-Allow-Origin"] == Self.shop)
      for (origin, allowed, credentials) in [
        // Credentials are for the recorded origin; the route allows the other ones none.
        (Self.shop, Self.shop, "true"), ("https://app.example", "https://app.example", nil),
        ("https://evil.example", Self.shop, "true"),
      ] as [(String, String, String?)] {
        let replay = try await rig.order("k", [("Origin", origin)])
        expectReplayed(replay, of: first)
        #expect(replay["Access-Control-Allow-Origin"] == allowed)
        #expect(replay["Access-Control-Allow-Credentials"] == credentials)
        #expect(replay["Access-Control-Expose-Headers"] == Self.exposed)
        #expect(replay["Vary"] == "Origin")
      }
      #expect(rig.backend.requests.count == 1)
    }
  }

  /// A body with these items.
  private static func items(_ ids: String...) -> String {
    #"{"orders":[\#(ids.map { #"{"id":"\#($0)"}"# }.joined(separator: ","))]}"#
  }

  @Test(arguments: StoreKind.allCases)
  func `the results of a batch can be read by pages that the backend lets read all of them`(
    store: StoreKind
  ) async throws {
    let batch = "{items: /orders, key: /id, results: /results}"
    try await Rig.run(Configuration(store: store, route: ["cors": "true", "batch": batch])) { rig in
      rig.backend.on("/v1/orders") { request in
        let results = request.text.ranges(of: #""id""#).map { _ in "1" }.joined(separator: ",")
        return Reply(
          201,
          [
            ("Access-Control-Allow-Origin", request["Origin"] ?? ""),
            ("Access-Control-Allow-Credentials", "true"),
          ], body: #"{"results":[\#(results)]}"#)
      }
      func send(_ origin: String, _ body: String) async throws -> ReceivedResponse {
        try await rig.order(nil, body: body, [("Origin", origin)])
      }
      // Executed, replayed, and both at once; a page elsewhere gets the shop's permission.
      for body in [Self.items("a"), Self.items("a"), Self.items("a", "b")] {
        for origin in [Self.shop] + (body == Self.items("a", "b") ? ["https://evil.example"] : []) {
          let response = try await send(origin, body)
          #expect(response.status == 201)
          #expect(response["Access-Control-Allow-Origin"] == Self.shop)
          #expect(response["Access-Control-Allow-Credentials"] == "true")
          #expect(response["Access-Control-Expose-Headers"] == Self.exposed)
          #expect(response["Vary"] == "Origin")
        }
      }
      let other = "https://app.example"
      #expect(try await send(other, Self.items("c"))["Access-Control-Allow-Origin"] == other)
      let mixed = try await send(other, Self.items("a", "c"))
      #expect(mixed.status == 201 && mixed["Access-Control-Allow-Origin"] == nil)
      let refused = try await send(Self.shop, #"{"orders":[{"id":"a","n":2}]}"#)
      expectRefused(refused, 409, "payload_mismatch", retryable: false)
      #expect(refused["Access-Control-Allow-Origin"] == nil)
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a page may ask what became of its request`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["cors": Self.list])) { rig in
      let path = "/.well-known/idempotency/outcome?method=POST&path=/v1/orders"
      let preflight = try await Self.preflight(
        rig, at: path, method: "GET", announcing: "authorization,idempotency-key")
      #expect(preflight.status == 204 && preflight["Content-Length"] == nil)
      #expect(preflight["Access-Control-Allow-Origin"] == Self.shop && preflight["Vary"] == "Origin")
      #expect(preflight["Access-Control-Allow-Headers"] == "authorization, idempotency-key")
      expectExecuted(try await rig.order("k"))
      let fields = Rig.fields(key: "k") + [("Origin", Self.shop)]
      let outcome = try await rig.semel.client.send("GET", path, fields)
      #expect(outcome.status == 200 && outcome.text.contains(#""state":"completed""#), "\(outcome.text)")
      #expect(outcome["Access-Control-Allow-Origin"] == Self.shop)
      let refused = try await rig.semel.client.send("GET", path, [("Origin", Self.shop)])
      expectRefused(refused, 401, "caller_unknown", retryable: false)
      #expect(refused["Access-Control-Allow-Origin"] == Self.shop)
      let other = try await Self.preflight(rig, at: path, method: "GET", origin: "https://evil.example")
      #expect(other["Access-Control-Allow-Origin"] == nil)
      #expect(rig.backend.requests.count == 1)
    }
  }
}
