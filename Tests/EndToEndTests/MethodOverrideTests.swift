import TestSupport
import Testing

/// A request that names another method by a field or a parameter is refused on a protected path, or is that method's.
struct MethodOverrideTests {
  private static let override = "X-HTTP-Method-Override"

  /// POST and PUT are protected, PATCH is not.
  private static func run(
    _ store: StoreKind, _ members: [String: String] = [:], top: [String: String] = [:],
    _ body: @escaping @Sendable (Rig) async throws -> Void
  ) async throws {
    let route = ["match": "{methods: [POST, PUT], path: /v1/orders}"].merging(members) { _, own in own }
    try await Rig.run(Configuration(store: store, top: top, route: route), body)
  }

  private static func send(
    _ rig: Rig, _ method: String, _ key: String?, _ more: [(String, String)] = []
  ) async throws -> ReceivedResponse {
    try await rig.semel.client.send(method, "/v1/orders", Rig.fields(key: key) + more, body: "{}")
  }

  private static func expectRefusal(_ response: ReceivedResponse) {
    expectRefused(response, 400, "bad_request", retryable: false)
    #expect(
      response.problem?.detail.hasPrefix("Send the method that is meant as the request's own") == true)
  }

  @Test(arguments: StoreKind.allCases)
  func `a field that names another method is refused where either is protected`(store: StoreKind)
    async throws
  {
    try await Self.run(store, ["idempotency": "optional"]) { rig in
      let names = [
        Self.override, "X-HTTP-Method", "X-Method-Override", "HTTP-Method-Override", "X-Method",
        "x-http-verb",
      ]
      for name in names {
        expectExecuted(try await Self.send(rig, "POST", name))
        for (own, other) in [("POST", "PUT"), ("POST", "GET"), ("POST", "foo"), ("PATCH", "put")] {
          Self.expectRefusal(try await Self.send(rig, own, name, [(name, other)]))
          Self.expectRefusal(try await Self.send(rig, own, nil, [(name, other)]))
        }
        expectReplayed(try await Self.send(rig, "POST", name, [(name, "post")]), 201)
      }
      #expect(rig.backend.requests.count == names.count)
    }
  }

  @Test func `a field that names another method passes where nothing is protected`() async throws {
    try await Self.run(.embedded) { rig in
      let unclear = [(Self.override, "DELETE"), ("X-Method", "GET")]
      let ignored = try await Self.send(rig, "PATCH", "k", [(Self.override, "delete")])
      #expect(ignored.idempotencyStatus == "ignored")
      let open = try await rig.semel.client.send("POST", "/open", Rig.fields(key: "k") + unclear, body: "{}")
      #expect(open.idempotencyStatus == "ignored")
      #expect(rig.backend.requests.map { $0[Self.override] } == ["delete", "DELETE"])
      // Of fields that contradict each other only the first are read, and any method may be behind them.
      Self.expectRefusal(try await Self.send(rig, "PATCH", "k", unclear))
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `with method_override a request is one of the method that it names`(store: StoreKind) async throws {
    try await Self.run(store, ["method_override": "true"]) { rig in
      for own in ["GET", "PATCH", "POST"] {
        let first = try await Self.send(rig, own, own, [(Self.override, "put")])
        expectExecuted(first)
        expectReplayed(try await Self.send(rig, own, own, [("X-Method", "PUT")]), of: first)
        expectReplayed(try await Self.send(rig, "PUT", own), of: first)
      }
      #expect(rig.backend.requests.map { $0[Self.override] } == ["put", "put", "put"])
      let keyless = try await Self.send(rig, "PATCH", nil, [(Self.override, "PUT")])
      expectRefused(keyless, 400, "key_missing", retryable: false)
      // PATCH is not protected: the request would leave protection.
      Self.expectRefusal(try await Self.send(rig, "POST", "k", [(Self.override, "PATCH")]))
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a POST that a field makes a DELETE succeeds as one`(store: StoreKind) async throws {
    let route = [
      "match": "{methods: [DELETE], path: /v1/orders}", "profile": "wunderlist", "on_unknown": "retry",
      "method_override": "true",
    ]
    try await Rig.run(Configuration(store: store, upstream: ["settle": "0s"], route: route)) { rig in
      rig.backend.on("/v1/orders", inTurn: [.unanswered, Reply(404)])
      let fields = [(Self.override, "DELETE"), ("X-Client-Request-ID", "a")]
      let first = try await Self.send(rig, "POST", nil, fields)
      #expect(first.status == 502)
      let second = try await Self.send(rig, "POST", nil, fields)
      expectExecuted(second, 204)
      expectReplayed(try await Self.send(rig, "POST", nil, fields), of: second)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a payload that is the key is that of the method that counts`(store: StoreKind) async throws {
    try await Self.run(store, ["key": "{from: [payload]}", "method_override": "true"]) { rig in
      let first = try await Self.send(rig, "POST", nil, [(Self.override, "PUT")])
      expectExecuted(first)
      expectReplayed(try await Self.send(rig, "PUT", nil), of: first)
      expectExecuted(try await Self.send(rig, "POST", nil))
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `fields that contradict each other, repeat or are named by Connection are refused`() async throws
  {
    try await Self.run(.embedded, ["method_override": "true"]) { rig in
      let refused = [
        [(Self.override, "PUT"), ("X-Method-Override", "POST")], [(Self.override, "PUT, PUT")],
        [(Self.override, "PUT"), (Self.override, "PUT")], [(Self.override, "PUT"), ("X-Method", "POST")],
        [(Self.override, "PUT"), ("Connection", Self.override)], [("Connection", "x-http-verb")],
      ]
      for fields in refused {
        expectRefused(try await Self.send(rig, "POST", "k", fields), 400, "bad_request", retryable: false)
      }
      #expect(rig.backend.requests.isEmpty)
      expectExecuted(try await Self.send(rig, "POST", "k", [(Self.override, "PUT"), ("X-Method", "put")]))
    }
  }

  /// A form of each type, and its media type.
  private static func forms(_ method: String) -> [(String, String)] {
    [
      ("application/x-www-form-urlencoded", "a=1&_method=\(method)&b=2"),
      ("application/x-www-form-urlencoded", "%5Fmethod=\(method)&b=\(String(repeating: "x", count: 70_000))"),
      (
        "multipart/form-data; boundary=B",
        "--B\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\n\(method)\r\n--B--\r\n"
      ),
      // As PHP reads names.
      ("application/x-www-form-urlencoded", "a=1&++.method=\(method)"),
      ("application/x-www-form-urlencoded", "_method%00b=\(method)"),
    ]
  }

  private static func fields(_ key: String?, _ type: String) -> [(String, String)] {
    Rig.fields(key: key).filter { $0.0 != "Content-Type" } + [("Content-Type", type)]
  }

  @Test(arguments: StoreKind.allCases)
  func `a form or a query that names a protected method is that method's, or is refused`(store: StoreKind)
    async throws
  {
    let members = ["match": "{methods: [DELETE], path: /v1/orders}", "method_override": "true"]
    try await Self.run(store, members) { rig in
      func send(_ query: String, _ type: String, _ body: String, _ key: String?) async throws
        -> ReceivedResponse
      {
        try await rig.semel.client.send(
          "POST", "/v1/orders" + query, Self.fields(key, type), body: body)
      }
      for (number, (type, body)) in Self.forms("delete").enumerated() {
        expectExecuted(try await send("", type, body, "f\(number)"))
        expectReplayed(try await send("", type, body, "f\(number)"), 201)
        expectRefused(try await send("", type, body, nil), 400, "key_missing", retryable: false)
      }
      expectExecuted(try await send("?_method=DELETE", "text/plain", "x", "q"))
      expectReplayed(try await send("?_method=DELETE", "text/plain", "x", "q"), 201)
      expectRefused(
        try await send("?_method=DELETE&_method=PUT", "text/plain", "x", "c"), 400, "bad_request",
        retryable: false)
      let count = rig.backend.requests.count
      for (type, body) in Self.forms("PUT") + Self.forms("") + [
        ("application/json", #"{"_method":"DELETE"}"#)
      ] {
        #expect(try await send("?a=1", type, body, "p").idempotencyStatus == "ignored")
      }
      #expect(count == 6 && rig.backend.requests.count == 17)
      // A form that is read before it is passed on is passed on whole.
      let length = Self.forms("PUT")[1].1.utf8.count
      #expect(rig.backend.requests.contains { $0.bodyLength == length })
    }
  }

  @Test func `a form that is too large to be read for a method is refused where another is protected`()
    async throws
  {
    let members = ["match": "{methods: [DELETE], path: /v1/orders}", "max_request_body": "1KiB"]
    try await Self.run(.embedded, members) { rig in
      let fields = Self.fields("k", "application/x-www-form-urlencoded")
      let body = "a=\(String(repeating: "x", count: 2000))"
      let refused = try await rig.semel.client.send("POST", "/v1/orders", fields, body: body)
      expectRefused(refused, 413, "request_too_large", retryable: false)
      #expect(rig.backend.requests.isEmpty)
      let other = try await rig.semel.client.send("POST", "/v1/others", fields, body: body)
      #expect(other.idempotencyStatus == "ignored")
    }
  }

  @Test func `a form that names another protected method than its own is refused`() async throws {
    try await Self.run(.embedded) { rig in
      for (type, body) in Self.forms("PUT") {
        for key in ["k", nil] {
          let refused = try await rig.semel.client.send(
            "POST", "/v1/orders", Self.fields(key, type), body: body)
          Self.expectRefusal(refused)
        }
        let fields = Self.fields("k", type)
        #expect(
          try await rig.semel.client.send("POST", "/open", fields, body: body).idempotencyStatus == "ignored")
      }
      let (type, body) = Self.forms("POST")[0]
      let fields = Self.fields("k", type)
      expectExecuted(try await rig.semel.client.send("POST", "/v1/orders", fields, body: body))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a query or a form that names a method twice is refused where any is protected`(store: StoreKind)
    async throws
  {
    let part = "--B\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n"
    let urlencoded = "application/x-www-form-urlencoded"
    let members = ["match": "{methods: [DELETE], path: /v1/orders}", "method_override": "true"]
    try await Self.run(store, members) { rig in
      for (query, type, body) in [
        ("", "multipart/form-data; boundary=B", part + part + "--B--\r\n"),
        ("", urlencoded, "_method=PUT&_method=PUT&_method=DELETE"),
        ("?_method=PUT&_method=PUT&_method=DELETE", urlencoded, "a=1"),
        ("?_method=PUT", urlencoded, "_method=DELETE"),
        ("", urlencoded, "_method=" + String(repeating: "+", count: 40) + "DELETE"),
      ] {
        let response = try await rig.semel.client.send(
          "POST", "/v1/orders" + query, Self.fields("k", type), body: body)
        expectRefused(response, 400, "bad_request", retryable: false)
      }
      #expect(rig.backend.requests.isEmpty)
      let twice = "_method=PUT&_method=PUT"
      let open = try await rig.semel.client.send("POST", "/open", Self.fields("k", urlencoded), body: twice)
      #expect(open.idempotencyStatus == "ignored")
    }
  }

  @Test func `underscored spellings never reach the backend`() async throws {
    for underscores in ["drop", "pass"] {
      try await Self.run(.embedded, top: ["underscores": underscores]) { rig in
        let names = ["X_HTTP_Method_Override", "HTTP_Method-Override", "X_Method", "X_Http_Verb"]
        let fields = names.map { ($0, "PUT") }
        expectExecuted(try await Self.send(rig, "POST", "k", fields))
        expectReplayed(try await Self.send(rig, "POST", "k"), 201)
        #expect(rig.backend.requests.count == 1)
        for name in names { #expect(rig.backend.requests.first?[name] == nil) }
      }
    }
  }
}
