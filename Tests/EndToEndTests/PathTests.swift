import Foundation
import TestSupport
import Testing

/// One path for matching and identity, and the client's own spelling for the backend.
struct PathTests {
  static let same: [(String, String)] = [
    ("/v1/./orders", "/v1/orders"), ("/v1/a/../orders", "/v1/orders"), ("/../../v1/orders", "/v1/orders"),
    ("/x/%2e%2e/v1/orders", "/v1/orders"), ("/v1/%6frders", "/v1/orders"), ("/v1/caf%c3%a9", "/v1/caf%C3%A9"),
    ("/v1/a%7eb", "/v1/a~b"), ("/v1/a%20b", "/v1/a%20b"), ("/v1/orders/", "/v1/orders/"),
    ("/v1//orders", "/v1//orders"),
  ]

  @Test(arguments: same)
  func `a path is brought into one form`(sent: String, normal: String) async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k", path: sent))
      // A signature may be over the client's spelling. Only dot segments are removed.
      #expect(
        rig.backend.requests.map(\.target) == [sent.contains("./") || sent.contains("%2e") ? normal : sent])
      expectReplayed(try await rig.order("k", path: normal), 201)
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

  @Test(arguments: [
    ("POST", "/files/a%2Fb"), ("GET", "/files/a%2fb/.x/c?x=%2F"), ("POST", #"/files/a\b"#),
    ("DELETE", "/v2/orders%2F7/items"), ("GET", "/v1/a%2Fb"), ("GET", "/files/%zz"), ("GET", "/files/a%00b"),
    ("GET", "/files/..;/v1"), ("POST", "/files/%c3%a9%5C%41"),
  ])
  func `a path passes byte for byte where no protected route could be meant`(
    method: String, path: String
  ) async throws {
    let route = ["match": "{methods: [POST, DELETE], path: /v1/**}"]
    try await Rig.run(Configuration(route: route)) { rig in
      let passed = try await rig.semel.client.send(method, path, Rig.fields(key: "k"))
      #expect(passed.idempotencyStatus == "ignored", "\(passed.text)")
      #expect(rig.backend.requests.map(\.target) == [path])
    }
  }

  @Test(arguments: [
    ("POST", "/v1%2Forders"), ("POST", "/v1%2Forders/7"), ("POST", "/x%2F..%2Fv1/orders"),
    ("POST", #"\v1\orders"#),
    ("POST", "/v1/orders%00.png"), ("POST", "/v1/orders;a%2Fb"), ("POST", "/V1%2forders"), ("POST", "/%zz"),
    ("POST", "/v1/orders%2f"), ("POST", "/é/../v1/orders"), ("post", "/v1/orders%2F"),
    ("POST", "/v1/orders.json%2F"),
  ])
  func `a path that any server may take for a protected one is refused`(
    method: String, path: String
  ) async throws {
    let route = ["match": "{methods: [POST], path: '/v1/orders'}"]
    let more = "{name: item, match: {methods: [POST], path: '/v1/orders/{id}'}, caller: {parts: [address]}}"
    try await Rig.run(Configuration(route: route, firstRoutes: [more])) { rig in
      let refused = try await rig.semel.client.send(method, path, Rig.fields(key: "k"), body: "{}")
      #expect(refused.status == 400)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an encoded slash is a character of its segment where the route keeps it`(store: StoreKind)
    async throws
  {
    let route = ["match": "{methods: [PUT], path: '/v1/projects/{id}/hooks'}", "encoded_slashes": "keep"]
    let other = "{name: other, match: {methods: [POST], path: '/v1/{any}'}, caller: {shared: true}}"
    let configuration = Configuration(store: store, route: route, firstRoutes: [other])
    try await Rig.run(configuration) { rig in
      func put(_ path: String, body: String = "{}") async throws -> ReceivedResponse {
        try await rig.semel.client.send("PUT", path, Rig.fields(key: "k"), body: body)
      }
      let first = try await put("/v1/projects/group%2fproject/hooks?x=%2F")
      expectExecuted(first)
      expectReplayed(try await put("/v1/projects/group%2Fproject/hooks?x=%2F"), of: first)
      expectRefused(
        try await put("/v1/projects/group%2Fproject/hooks?x=%2F", body: "[]"), 409, "payload_mismatch",
        retryable: false)
      expectExecuted(try await put("/v1/projects/group%2Fother/hooks"))
      // The client's own spelling, which a signature may cover.
      #expect(
        rig.backend.requests.map(\.target) == [
          "/v1/projects/group%2fproject/hooks?x=%2F", "/v1/projects/group%2Fother/hooks",
        ])
      for path in [
        "/v1/projects/a%2F..%2Fb/hooks", "/v1/projects/a%2Fb/x/../hooks", "/v1/projects/a%2Fb;c/hooks",
        #"/v1/projects/a%2Fb\c/hooks"#, "/v1/projects%2Fa/hooks",
      ] {
        expectRefused(try await put(path), 400, "bad_request", retryable: false)
      }
      // Nothing has changed for a path that can mean no protected route, or another one.
      let passed = try await rig.semel.client.send("PUT", "/files/a%2Fb", Rig.fields(key: "k"), body: "{}")
      #expect(passed.idempotencyStatus == "ignored")
      let ambiguous = try await rig.semel.client.send(
        "POST", "/v1/a%2Fb", Rig.fields(key: "k"), body: "{}")
      expectRefused(ambiguous, 400, "bad_request", retryable: false)
      #expect(rig.backend.requests.count == 3)
      // Operators and inquiries name the same record.
      let shown = try await rig.key([
        "show", "--route", "orders", "--key", "k", "--path", "/v1/projects/group%2fproject/hooks", "--method",
        "PUT", "--host", "orders.example", "--caller", "header:Authorization=Bearer alice",
      ])
      #expect(shown.output.contains("completed"), "\(shown.output)")
      let inquiry = try await rig.semel.client.send(
        "GET",
        "/.well-known/idempotency/outcome?method=PUT&path=/v1/projects/group%252Fproject/hooks",
        Rig.fields(key: "k"))
      #expect(inquiry.text.contains(#""state":"completed""#), "\(inquiry.text)")
    }
  }

  @Test func `an encoded slash that is kept is explained`() async throws {
    func explain(_ slashes: String, ends exit: ManagedProcess.Exit) async throws -> String {
      let directory = TemporaryDirectory()
      try """
      upstreams: {orders: {url: "http://127.0.0.1:9000"}}
      routes: [{name: r, match: {path: "/v1/{id}"}, caller: {shared: true}, encoded_slashes: \(slashes)}]
      """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
      let process = try ManagedProcess([
        SemelProcess.binary, "explain", directory.file("semel.yaml"), "PUT", "http://a.example/v1/a%2Fb",
        "-H",
        "Idempotency-Key: k",
      ])
      #expect(try await process.exit() == exit, "\(process.output)\(process.errors)")
      return process.output
    }
    let kept = try await explain("keep", ends: .code(0))
    #expect(
      kept.contains("path         an encoded slash is a character of its segment (encoded_slashes: keep)\n"),
      "\(kept)")
    #expect(try await explain("refuse", ends: .code(1)).contains("400 bad_request"))
  }

  @Test(arguments: StoreKind.allCases)
  func `a request that is repeated at another host of its service runs once`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["endpoint": "{host: any}"])) { rig in
      func send(_ host: String, _ body: String = "{}") async throws -> ReceivedResponse {
        try await rig.semel.client.send(
          "POST", "/v1/indexes/products", Rig.fields(key: "k") + [("Host", host)], body: body)
      }
      let first = try await send("app-1.service.example")
      expectExecuted(first)
      for host in ["app-2.service.example", "app-dsn.service.example:443", "192.0.2.1"] {
        expectReplayed(try await send(host), of: first)
      }
      expectRefused(try await send("app-3.service.example", "[]"), 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.count == 1)
      let shown = try await rig.key([
        "show", "--route", "orders", "--key", "k", "--path", "/v1/indexes/products", "--method", "POST",
        "--caller", "header:Authorization=Bearer alice",
      ])
      #expect(shown.output.contains("completed"), "\(shown.output)")
      // A key counts at one host by default.
      var changed = rig.configuration
      changed.route["endpoint"] = "path"
      try await rig.reloadAccepted(changed)
      expectExecuted(try await send("app-1.service.example"))
      expectExecuted(try await send("app-2.service.example"))
    }
  }

  @Test func `fields that name another path reach no backend`() async throws {
    for underscores in ["drop", "pass"] {
      try await Rig.run(Configuration(top: ["underscores": underscores])) { rig in
        let names = [
          "X-Original-URL", "x-rewrite-url", "X-Override-URL", "X-HTTP-Path-Override", "X_Original_URL",
        ]
        expectExecuted(try await rig.order("k", names.map { ($0, "/v1/other") }))
        for name in names { #expect(rig.backend.requests.first?[name] == nil, "\(name)") }
      }
    }
    try await Rig.run(Configuration(top: ["trusted_proxies": "[127.0.0.1]"])) { rig in
      expectExecuted(try await rig.order("k", [("X-Original-URL", "/v1/other")]))
      #expect(rig.backend.requests.first?["X-Original-URL"] == "/v1/other")
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
