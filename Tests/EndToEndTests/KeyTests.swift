import TestSupport
import Testing

/// The places of a key, and the keys that are refused.
struct KeyTests {
  @Test func `a request without a key is refused where one is required`() async throws {
    try await Rig.run { rig in
      expectRefused(try await rig.order(nil), 400, "key_missing", retryable: false)
      expectRefused(try await rig.order(""), 400, "key_missing", retryable: false)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test(arguments: [
    "a b", "a,b", #""unfinished"#, #""a"b"#, "schl\u{FC}ssel", "a\tb", String(repeating: "k", count: 256),
  ])
  func `a malformed key is refused`(key: String) async throws {
    try await Rig.run { rig in
      expectRefused(try await rig.order(key), 400, "key_invalid", retryable: false)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `two equal keys are one, and two others are refused`() async throws {
    try await Rig.run { rig in
      let refused = try await rig.order("k", [("Idempotency-Key", "l")])
      expectRefused(refused, 400, "key_invalid", retryable: false)
      #expect(rig.backend.requests.isEmpty)
      let twice = try await rig.order("k", [("Idempotency-Key", "k")])
      expectExecuted(twice)
      expectReplayed(try await rig.order("k"), of: twice)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a quoted key may hold spaces`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let first = try await rig.order(#""order 17""#)
      expectExecuted(first)
      expectReplayed(try await rig.order(#""order 17""#), of: first)
      expectExecuted(try await rig.order("order17"))
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: [
    "undefined", "null", "None", "NaN", "nil", #""[object Object]""#, "00000000-0000-0000-0000-000000000000",
    "${uuid}", "{{uuid}}",
  ])
  func `a key that names nothing is refused, unless the route takes it`(key: String) async throws {
    try await Rig.run { rig in
      let refused = try await rig.order(key)
      expectRefused(refused, 400, "key_invalid", retryable: false)
      #expect(refused.problem?.detail.contains("this one names nothing") == true)
      #expect(rig.backend.requests.isEmpty)
      try await rig.reload { $0.route["key"] = "{placeholders: accept}" }
      expectExecuted(try await rig.order(key))
    }
  }

  @Test func `an empty key on an optional route is told to be ignored`() async throws {
    try await Rig.run(Configuration(route: ["idempotency": "optional"])) { rig in
      for key in ["", #""""#] {
        let passed = try await rig.order(key)
        #expect(passed.status == 201 && passed.idempotencyStatus == "ignored")
      }
      let passed = try await rig.order(nil)
      #expect(passed.status == 201 && passed.idempotencyStatus == nil)
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test func `a payload under a new key of its caller is counted`() async throws {
    try await Rig.run { rig in
      for (key, caller) in [("k1", "Bearer alice"), ("k1", "Bearer alice"), ("k2", "Bearer bob")] {
        _ = try await rig.order(key, caller: caller)
      }
      expectExecuted(try await rig.order("k3", body: #"{"amount":2000}"#))
      #expect(
        !(try await rig.semel.admin.send("GET", "/metrics").text.contains(
          "semel_payloads_under_new_key_total{")))
      expectExecuted(try await rig.order("k4"))
      expectExecuted(try await rig.order("k5"))
      try await rig.semel.counter("semel_payloads_under_new_key_total", label: #"route="orders""#, becomes: 2)
    }
  }

  @Test func `the longest key is taken`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order(String(repeating: "k", count: 255)))
    }
  }

  @Test func `a quoted key and a bare one are the same`() async throws {
    try await Rig.run { rig in
      let first = try await rig.order("abc")
      expectReplayed(try await rig.order(#""abc""#), of: first)
      expectReplayed(try await rig.order("  abc  "), of: first)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `keys that differ in letter case are two, UUIDs as well`() async throws {
    try await Rig.run(Configuration(route: ["key": "{format: uuid}"])) { rig in
      let uuid = "7f7cf1a2-5d6a-4f0e-9d2b-0a2b6a1f3c11"
      let lower = try await rig.order(uuid)
      expectExecuted(lower)
      expectExecuted(try await rig.order(uuid.uppercased()))
      expectReplayed(try await rig.order(uuid), of: lower)
      #expect(Set(rig.backend.requests.map(\.requestID)).count == 2)
    }
  }

  @Test func `lengths and format follow the route`() async throws {
    let lengths = Configuration(route: ["key": "{min_length: 3, max_length: 4}"])
    try await Rig.run(lengths) { rig in
      expectRefused(try await rig.order("ab"), 400, "key_invalid", retryable: false)
      expectExecuted(try await rig.order("abc"))
      expectExecuted(try await rig.order("abcd"))
      expectRefused(try await rig.order("abcde"), 400, "key_invalid", retryable: false)
    }
    try await Rig.run(Configuration(route: ["key": "{format: uuid}"])) { rig in
      expectRefused(try await rig.order("abc"), 400, "key_invalid", retryable: false)
      expectExecuted(try await rig.order("7f7cf1a2-5d6a-4f0e-9d2b-0a2b6a1f3c11"))
    }
  }

  @Test func `the first source that yields a key counts`() async throws {
    let from = "{from: ['header:X-Request', 'query:key', 'json:/request/id', 'form:request_id']}"
    try await Rig.run(Configuration(route: ["key": from])) { rig in
      func send(
        path: String = "/v1/orders", _ fields: [(String, String)], _ body: String
      ) async throws -> ReceivedResponse {
        try await rig.semel.client.send("POST", path, [("Authorization", "a")] + fields, body: body)
      }
      let json = [("Content-Type", "application/json")]
      let form = [("Content-Type", "application/x-www-form-urlencoded")]
      let body = #"{"request":{"id":"k3"}}"#
      expectExecuted(try await send(json + [("X-Request", "k1")], body))
      expectExecuted(try await send(json, body))
      expectReplayed(try await send(json, body), 201)
      // The header's key is used with another payload: it counts, although the query has a new one.
      expectRefused(
        try await send(path: "/v1/orders?key=k2", json + [("X-Request", "k1")], body), 409,
        "payload_mismatch",
        retryable: false)
      expectExecuted(try await send(path: "/v1/orders?key=k2", json, "{}"))
      expectExecuted(try await send(form, "amount=1&request_id=k4"))
      expectReplayed(try await send(form, "request_id=k4&amount=1"), 201)
      expectRefused(try await send(form, "amount=1"), 400, "key_missing", retryable: false)
      #expect(rig.backend.requests.count == 4)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `the pages of one snapshot are the same each time`(store: StoreKind) async throws {
    let pages =
      "{name: terms, match: {methods: [GET], path: /v1/terms}, idempotency: optional, "
      + "caller: {parts: [address]}, key: {from: [['query:paging_token', 'query:page']]}}"
    try await Rig.run(Configuration(store: store, firstRoutes: [pages])) { rig in
      func get(_ query: String) async throws -> ReceivedResponse {
        try await rig.semel.client.send("GET", "/v1/terms?" + query, [])
      }
      let first = try await get("paging_token=a&page=1")
      expectExecuted(first, first.status)
      expectReplayed(try await get("page=1&paging_token=a"), of: first)
      let second = try await get("paging_token=a&page=2")
      expectExecuted(second, second.status)
      let other = try await get("paging_token=a&page=1&limit=9")
      expectRefused(other, 409, "payload_mismatch", retryable: false)
      for _ in 0..<2 { #expect(try await get("paging_token=a").idempotencyStatus == nil) }
      #expect(rig.backend.requests.count == 4)
      let texts = [
        "--route", "terms", "--host", "orders.example", "--caller", "address=127.0.0.1", "--key", "a",
        "--key",
      ]
      #expect(try await rig.key(["show"] + texts + ["2"]).output.contains("completed"))
      #expect(try await rig.key(["show"] + texts + ["3"]).output.contains("absent"))
    }
  }

  @Test(arguments: StoreKind.allCases, ["GET", "HEAD", "POST"])
  func `the whole response is recorded, whatever part of it the first delivery wants`(
    store: StoreKind, method: String
  ) async throws {
    let routes = [
      "{name: pages, match: {methods: [\(method)], path: /pages}, caller: {parts: [address]}}",
      "{name: parts, match: {methods: [\(method)], path: /parts}, caller: {parts: [address]}, "
        + "fingerprint: {headers: [Range]}}",
    ]
    let conditions = [
      ("If-None-Match", "\"1\""), ("If-Modified-Since", "Tue, 24 Nov 2026 08:00:00 GMT"),
      ("Range", "bytes=0-1"),
      ("If-Range", "\"1\""),
    ]
    try await Rig.run(Configuration(store: store, firstRoutes: routes)) { rig in
      for path in ["/pages", "/parts"] {
        let fields = [("Idempotency-Key", "a")] + conditions
        expectExecuted(try await rig.semel.client.send(method, path, fields + [("If-Match", "\"1\"")]))
        let request = try #require(rig.backend.requests.last)
        let kept = method == "POST" ? conditions.map(\.0) : path == "/parts" ? ["Range"] : []
        for (name, value) in conditions {
          #expect(request[name] == (kept.contains(name) ? value : nil), "\(path) \(name)")
        }
        #expect(request["If-Match"] == "\"1\"")
      }
      // A delivery without these conditions gets all of it. `If-Match` is one of the operation, and part of the payload.
      let plain = [("Idempotency-Key", "a"), ("If-Match", "\"1\"")]
      expectReplayed(try await rig.semel.client.send(method, "/pages", plain), 201)
      let other = try await rig.semel.client.send(method, "/parts", plain)
      #expect(other.status == 409 && rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `equal payloads are one intent where the payload is the key`(store: StoreKind) async throws {
    let key = "{from: ['header:Idempotency-Key', payload]}"
    try await Rig.run(Configuration(store: store, route: ["key": key])) { rig in
      let first = try await rig.order(nil)
      expectExecuted(first)
      expectReplayed(try await rig.order(nil, body: #"{ "amount": 1999 }"#), of: first)
      expectExecuted(try await rig.order(nil, body: #"{"amount":2000}"#))
      expectExecuted(try await rig.order(nil, caller: "Bearer bob"))
      expectExecuted(try await rig.order("k"))
      // Larger than what is read on the event loop.
      let large = #"{"note":"\#(String(repeating: "x", count: 100_000))"}"#
      expectExecuted(try await rig.order(nil, body: large))
      expectReplayed(try await rig.order(nil, body: large), 201)
      // Such a key is made as ever, so that retries find what earlier versions have recorded.
      expectExecuted(try await rig.order(nil, body: #"{"amount":1999.0}"#))
      // A payload that only the record's own fingerprint distinguishes is refused, and never gets another one's response.
      expectRefused(
        try await rig.order(nil, [("Destination", "/b")]), 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.count == 6)
      #expect(try await rig.semel.counter("semel_keys_under_other_caller_total") == 0)
    }
  }

  /// Bodies that a backend may read and Semel does not.
  private static let unreadable: [(type: String, coding: String?, body: String)] = [
    ("application/json", "gzip", "compressed"), ("application/json", nil, "\u{FEFF}{\"id\":\"k\"}"),
    ("application/json", nil, #"{"id":"k","amount":NaN}"#),
    (
      "application/json", nil,
      #"{"id":"k","deep":"# + String(repeating: "[", count: 128) + String(repeating: "]", count: 128) + "}"
    ),
    ("application/x-www-form-urlencoded", "br", "compressed"),
    (
      "multipart/form-data; boundary=x", nil,
      "--x\r\nContent-Disposition: form-data\r\n"
    ),
    ("multipart/form-data; boundary=x", nil, part(";\r\n name=\"id\"")),
    ("multipart/form-data; boundary=x", nil, part("; name = \"id\"")),
    ("multipart/form-data; boundary=x", nil, part("; name*=utf-8''id")),
    ("multipart/form-data; boundary=x", nil, part("; name=\"id\"; filename=\"\"")),
    ("application/x-www-form-urlencoded, text/plain", nil, "id=k"),
  ]

  /// A form of one part, with what follows the type of its disposition.
  private static func part(_ parameters: String) -> String {
    "--x\r\nContent-Disposition: form-data\(parameters)\r\n\r\nk\r\n--x--\r\n"
  }

  @Test(arguments: ["optional", "required"])
  func `a body that may contain a key, and cannot be read, is refused`(idempotency: String) async throws {
    let key = "{from: ['header:X-Key', 'json:/id', 'form:id', 'header:X-Other']}"
    try await Rig.run(Configuration(route: ["key": key, "idempotency": idempotency])) { rig in
      func order(_ type: String, _ coding: String?, _ body: String, _ key: String? = nil) async throws
        -> ReceivedResponse
      {
        var fields = [("Authorization", "Bearer alice"), ("Content-Type", type)]
        fields += (coding.map { [("Content-Encoding", $0)] } ?? []) + (key.map { [("X-Key", $0)] } ?? [])
        return try await rig.semel.client.send("POST", "/v1/orders", fields, body: body)
      }
      let code = idempotency == "optional" ? "key_invalid" : "key_missing"
      for (number, (type, coding, body)) in Self.unreadable.enumerated() {
        let refused = try await order(type, coding, body)
        expectRefused(refused, 400, code, retryable: false)
        #expect(refused.problem?.detail.contains("RFC 8259") == true, "\(refused.text)")
        // A source that comes first has the key.
        expectExecuted(try await order(type, coding, body, "\(number)"))
      }
      let later = [("Authorization", "Bearer alice"), ("Content-Type", "application/json"), ("X-Other", "k")]
      let hidden = later + [("Content-Encoding", "gzip")]
      expectRefused(
        try await rig.semel.client.send("POST", "/v1/orders", hidden, body: "compressed"), 400, "key_invalid",
        retryable: false)
      #expect(rig.backend.requests.count == Self.unreadable.count)
      // Two media types, though they are equal.
      let form = ("Content-Type", "application/x-www-form-urlencoded")
      let fields = [("Authorization", "Bearer alice"), form, form]
      let twofold = try await rig.semel.client.send("POST", "/v1/orders", fields, body: "id=k")
      expectRefused(twofold, 400, code, retryable: false)
      guard idempotency == "optional" else { return }
      for (type, body) in [("application/json", "{}"), ("text/plain", "text"), ("application/json", "")] {
        #expect(try await order(type, nil, body).status == 201)
      }
      #expect(try await order("image/png", "gzip", "compressed").status == 201)
      let file = Self.part("; name=\"upload\"; filename=\"id\"; filename*=utf-8''id")
      #expect(try await order("multipart/form-data; boundary=x", nil, file).status == 201)
    }
  }

  @Test func `an optional key may be missing`() async throws {
    try await Rig.run(Configuration(route: ["idempotency": "optional"])) { rig in
      for _ in 0..<2 {
        let passed = try await rig.order(nil)
        #expect(passed.status == 201)
        #expect(passed.idempotencyStatus == nil)
      }
      expectExecuted(try await rig.order("k"))
      expectReplayed(try await rig.order("k"), 201)
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test func `a key is ignored on an unprotected route`() async throws {
    let off = "{name: off, match: {path: /v1/off}, idempotency: off}"
    try await Rig.run(Configuration(firstRoutes: [off])) { rig in
      for path in ["/v1/off", "/elsewhere"] {
        for _ in 0..<2 {
          let passed = try await rig.order("k", path: path)
          #expect(passed.status == 201)
          #expect(passed.idempotencyStatus == "ignored")
        }
        #expect(try await rig.order(nil, path: path).idempotencyStatus == nil)
      }
      #expect(rig.backend.requests.count == 6)
      #expect(rig.backend.requests.allSatisfy { $0.requestID == nil && $0.attempt == nil })
    }
  }
}
