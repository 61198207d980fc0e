import TestSupport
import Testing

/// One key runs one operation, whether the backend honours a field that overrides the method or ignores it.
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

  private static func expectMismatch(_ response: ReceivedResponse) {
    expectRefused(response, 409, "payload_mismatch", retryable: false)
  }

  @Test(arguments: StoreKind.allCases)
  func `a protected method keeps its record when another one overrides it`(store: StoreKind) async throws {
    try await Self.run(store) { rig in
      for other in ["GET", "PATCH", "foo"] {
        let field = [(Self.override, other)]
        expectExecuted(try await Self.send(rig, "POST", "plain first \(other)".hyphenated))
        Self.expectMismatch(try await Self.send(rig, "POST", "plain first \(other)".hyphenated, field))
        let first = try await Self.send(rig, "POST", "plain last \(other)".hyphenated, field)
        expectExecuted(first)
        expectReplayed(try await Self.send(rig, "POST", "plain last \(other)".hyphenated, field), of: first)
        Self.expectMismatch(try await Self.send(rig, "POST", "plain last \(other)".hyphenated))
      }
      // The field still goes to the backend.
      let sent = rig.backend.requests.map { $0[Self.override] }
      #expect(sent == [nil, "GET", nil, "PATCH", nil, "foo"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a POST that a field makes a DELETE succeeds as one`(store: StoreKind) async throws {
    let route = ["match": "{methods: [DELETE], path: /v1/orders}", "profile": "wunderlist"]
    try await Self.run(store, route) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(503), Reply(404)])
      let fields = [(Self.override, "DELETE"), ("X-Client-Request-ID", "a")]
      let first = try await Self.send(rig, "POST", nil, fields)
      #expect(first.status == 503)
      let second = try await Self.send(rig, "POST", nil, fields)
      expectExecuted(second, 204)
      expectReplayed(try await Self.send(rig, "POST", nil, fields), of: second)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a payload that is the key is that of the protected method`(store: StoreKind) async throws {
    try await Self.run(store, ["key": "{from: [payload]}"]) { rig in
      let first = try await Self.send(rig, "POST", nil)
      expectExecuted(first)
      Self.expectMismatch(try await Self.send(rig, "POST", nil, [(Self.override, "GET")]))
      Self.expectMismatch(try await Self.send(rig, "POST", nil, [(Self.override, "PATCH")]))
      expectReplayed(try await Self.send(rig, "POST", nil, [(Self.override, "POST")]), of: first)
      let overriding = try await Self.send(rig, "GET", nil, [(Self.override, "PUT")])
      expectExecuted(overriding)
      expectReplayed(try await Self.send(rig, "GET", nil, [(Self.override, "PUT")]), of: overriding)
      Self.expectMismatch(try await Self.send(rig, "PUT", nil))
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a protected method keeps its record when it overrides another one`(store: StoreKind) async throws {
    try await Self.run(store) { rig in
      for own in ["GET", "PATCH"] {
        let first = try await Self.send(rig, own, own, [(Self.override, "PUT")])
        expectExecuted(first)
        expectReplayed(try await Self.send(rig, own, own, [(Self.override, "put")]), of: first)
        Self.expectMismatch(try await Self.send(rig, "PUT", own))
        expectExecuted(try await Self.send(rig, "PUT", own + "-plain"))
        Self.expectMismatch(try await Self.send(rig, own, own + "-plain", [(Self.override, "PUT")]))
      }
      #expect(rig.backend.requests.count == 4)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a protected method must not override another protected one`(store: StoreKind) async throws {
    try await Self.run(store) { rig in
      let names = [
        Self.override, "X-HTTP-Method", "X-Method-Override", "HTTP-Method-Override", "X-Method",
        "x-http-verb",
      ]
      for (index, name) in names.enumerated() {
        let (own, other) = index.isMultiple(of: 2) ? ("POST", "PUT") : ("PUT", "POST")
        expectExecuted(try await Self.send(rig, own, name))
        let refused = try await Self.send(rig, own, name, [(name, other)])
        expectRefused(refused, 400, "bad_request", retryable: false)
        #expect(refused.problem?.detail.hasPrefix("Send the overriding method as the request's own") == true)
        expectReplayed(try await Self.send(rig, own, name, [(name, own.lowercased())]), 201)
      }
      #expect(rig.backend.requests.count == names.count)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `without a protected method, or without a key, nothing is refused`(store: StoreKind) async throws {
    try await Self.run(store, ["idempotency": "optional"]) { rig in
      let ignored = try await Self.send(rig, "PATCH", "k", [(Self.override, "DELETE"), ("X-Method", "GET")])
      #expect(ignored.idempotencyStatus == "ignored")
      #expect(try await Self.send(rig, "POST", nil, [(Self.override, "PUT")]).status == 201)
      #expect(rig.backend.requests.map { $0[Self.override] } == ["DELETE", "PUT"])
    }
  }

  @Test func `a key is required by the overriding method, too`() async throws {
    try await Self.run(.embedded) { rig in
      let keyless = try await Self.send(rig, "PATCH", nil, [(Self.override, "PUT")])
      expectRefused(keyless, 400, "key_missing", retryable: false)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `fields that contradict each other, repeat or are named by Connection are refused`() async throws
  {
    try await Self.run(.embedded) { rig in
      let refused = [
        [(Self.override, "GET"), ("X-Method-Override", "DELETE")], [(Self.override, "GET, GET")],
        [(Self.override, "GET"), (Self.override, "GET")], [(Self.override, "GET"), ("X-Method", "POST")],
        [(Self.override, "GET"), ("Connection", Self.override)], [("Connection", "x-http-verb")],
      ]
      for fields in refused {
        expectRefused(try await Self.send(rig, "POST", "k", fields), 400, "bad_request", retryable: false)
      }
      #expect(rig.backend.requests.isEmpty)
      expectExecuted(try await Self.send(rig, "POST", "k", [(Self.override, "GET"), ("X-Method", "get")]))
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

extension String {
  /// The words as one key.
  fileprivate var hyphenated: String { split(separator: " ").joined(separator: "-") }
}
