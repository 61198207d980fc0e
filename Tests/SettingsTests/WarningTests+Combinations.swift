import Testing

/// Warnings of members that are valid alone and harm the route's requests or clients.
extension WarningTests {
  @Test(arguments: [
    ("[\"header:Date\"]", ["header:date"]),
    ("[\"json:/id\", \"header:Traceparent\"]", ["header:traceparent"]),
    ("[\"header:X-Request-Id\"]", ["header:x-request-id"]),
    ("[[\"header:X-Account\", \"query:nonce\"]]", ["query:nonce"]),
    ("[\"form:timestamp\", \"json:/meta/timestamp\"]", ["form:timestamp", "json:/meta/timestamp"]),
    ("[\"header:PayPal-Request-Id\", \"header:X-Client-Request-ID\", \"query:note\", payload]", []),
  ])
  func `a key that each delivery has anew is warned of`(from: String, named: [String]) throws {
    let key = "key: {from: \(from)}"
    let found = try warnings(route(key))
    #expect(found.count == named.count, "\(found)")
    for (warning, source) in zip(found, named) {
      #expect(
        warning.contains("routes[0].key: takes keys from \(source), which is commonly different in each"))
    }
    #expect(try warnings(route("idempotency: off, \(key)")).isEmpty)
    let both = "routes: [{name: r, match: {path: /r}}, {name: s, match: {path: /s}}]\n"
    let inherited = try warnings(upstream + "defaults: {caller: {parts: [address]}, \(key)}\n\(both)")
    #expect(inherited.count == named.count, "\(inherited)")
    #expect(inherited.allSatisfy { $0.contains("defaults.key: takes keys from") })
  }

  @Test(arguments: [
    ("\"header:User-Agent\"", "header:user-agent"), ("\"header:Origin\"", "header:origin"),
    ("\"header:Content-Type\"", "header:content-type"),
    ("\"header:Accept-Language\"", "header:accept-language"),
    ("\"header:User-Agent\", \"header:Sec-Fetch-Site\"", "header:user-agent and header:sec-fetch-site"),
    ("\"header:User-Agent\", \"header:X-Account\"", nil), ("\"header:X-Account\"", nil), ("address", nil),
  ])
  func `a caller by what many clients send is warned of`(parts: String, named: String?) throws {
    let text = upstream + "routes: [{name: r, caller: {parts: [\(parts)]}}]\n"
    let expected = named.map {
      "semel.yaml:2:28: routes[0].caller: has no part but \($0), of which many clients send the same: these are one "
        + "caller then, and whoever sends another client's key gets its response; name a field that says who the client is"
    }
    #expect(try warnings(text) == [expected].compactMap(\.self))
    #expect(try warnings(text.replacing("{name: r", with: "{idempotency: off, name: r")).isEmpty)
  }

  @Test(arguments: [
    ("{unknown: [2xx]}", "(200 and others)"), ("{unknown: [201, 202]}", "(201)"),
    ("{unknown: [2xx], final: [200, 201]}", "(203 and others)"), ("{unknown: [202]}", nil),
    ("{unknown: [3xx, 500]}", nil),
  ])
  func `success that is unknown is warned of`(outcomes: String, statuses: String?) throws {
    let text = statuses.map { "routes[0].outcomes: counts success under unknown \($0): the next delivery" }
    let found = try warnings(route("outcomes: \(outcomes)"))
    #expect(found.count == (text == nil ? 0 : 1), "\(found)")
    if let text { #expect(found.first?.contains(text) == true, "\(found)") }
  }

  @Test func `both doubts about success in the defaults are given once`() throws {
    let found = try warnings(
      upstream + "defaults: {caller: {parts: [address]}, outcomes: {retry: [200], unknown: [201]}}\n"
        + "routes: [{name: r, match: {path: /r}}, {name: s, match: {path: /s}}]\n")
    #expect(found.map { $0.contains("defaults.outcomes: counts success under") } == [true, true], "\(found)")
  }

  @Test(arguments: [
    (
      "retention: 1h, remember: 1h", "is 1h, as long as retention: a retry that comes later",
      "write 1d or more"
    ),
    (
      "retention: 2d, remember: 2d", "is 2d, as long as retention: a retry that comes later",
      "write 4d or more"
    ),
    (
      "retention: 1m, remember: 2m", "is 2m: a retry that comes later finds no record and runs again",
      "1d or more"
    ),
    ("retention: 1m", nil, ""), ("retention: 1h, remember: 24h", nil, ""), ("remember: 30h", nil, ""),
    ("retention: 1m, remember: 1m, key: {from: [payload]}", nil, ""),
    ("retention: 1m, remember: 1m, idempotency: off", nil, ""),
  ])
  func `a key that is forgotten early is warned of`(members: String, text: String?, remedy: String) throws {
    let found = try warnings(route(members))
    #expect(found.count == (text == nil ? 0 : 1), "\(found)")
    guard let text, let warning = found.first else { return }
    #expect(warning.contains("routes[0].remember: \(text)") && warning.contains(remedy), "\(warning)")
    let inherited = try warnings(
      upstream + "defaults: {caller: {parts: [address]}, \(members)}\n"
        + "routes: [{name: r, match: {path: /r}}, {name: s, match: {path: /s}}]\n")
    #expect(inherited.map { $0.contains("defaults.remember: \(text)") } == [true], "\(inherited)")
  }

  @Test func `a route that keeps no response is warned of`() throws {
    let warning =
      "keeps no response that has a body: the next delivery of a request that has succeeded gets 409"
    let own = try warnings(route("max_response_body: 0B"))
    #expect(own.map { $0.contains("routes[0].max_response_body: \(warning)") } == [true], "\(own)")
    for members in ["max_response_body: 1KiB", "idempotency: off, max_response_body: 0B"] {
      #expect(try warnings(route(members)).isEmpty, "\(members)")
    }
    let inherited = try warnings(
      upstream + "defaults: {caller: {parts: [address]}, max_response_body: 0B}\n"
        + "routes: [{name: r, match: {path: /r}}, {name: s, match: {path: /s}}]\n")
    #expect(
      inherited.map { $0.contains("defaults.max_response_body: \(warning)") } == [true], "\(inherited)")
  }

  @Test(arguments: [
    ("match: {methods: [DELETE], path: /o}, key: {from: [\"json:/id\"]}", "is refused (key_missing)"),
    (
      "match: {methods: [GET, HEAD]}, idempotency: optional, key: {from: [\"form:id\", [\"query:a\", \"json:/b\"]]}",
      "passes unprotected"
    ),
    ("match: {methods: [DELETE]}, profile: square", "is refused (key_missing)"),
    ("match: {methods: [DELETE, POST]}, key: {from: [\"json:/id\"]}", nil),
    ("match: {methods: [DELETE]}, key: {from: [\"json:/id\", \"header:X-Key\"]}", nil),
    ("match: {methods: [GET]}, key: {from: [payload]}", nil), ("key: {from: [\"json:/id\"]}", nil),
    ("match: {methods: [DELETE]}, idempotency: off, key: {from: [\"json:/id\"]}", nil),
  ])
  func `keys in bodies that requests do not have are warned of`(members: String, end: String?) throws {
    let found = try warnings(route(members))
    #expect(found.count == (end == nil ? 0 : 1), "\(found)")
    guard let end, let warning = found.first else { return }
    #expect(
      warning.contains("routes[0].match: lists ") && warning.contains(" such a request \(end); take keys"))
  }

  @Test(arguments: [
    ("/v1/orders/$id", "$id", "{id}"), ("/$orderId/refunds", "$orderId", "{orderId}"),
    ("/v1/{id}/$a.b/**", "$a.b", "{a}"),
  ])
  func `a parameter as other frameworks write it is warned of`(path: String, segment: String, form: String)
    throws
  {
    #expect(
      try warnings(route("match: {path: \(path.contains("{") ? "'\(path)'" : path)}")) == [
        "semel.yaml:2:62: routes[0].match.path: has the segment \(segment), which stands for these letters alone: if it "
          + "is a parameter, as TanStack Router and Remix write it, the route protects nothing; write \(form) then"
      ])
  }

  @Test(arguments: [
    "/$batch", "/v1/orders/$count", "/fhir/Claim/$submit", "/fhir/Claim/{id}/$run", "/fhir/$process-message",
    "/v1/a$b",
  ])
  func `an operation of OData or FHIR is no parameter`(path: String) throws {
    #expect(try warnings(route("match: {path: '\(path)'}")).isEmpty)
  }

  @Test(arguments: [
    ("127.0.0.1:8081", "127.0.0.1:8081", true), ("127.0.0.1:8081", "localhost:8081", true),
    ("127.0.0.1:8081", "127.0.0.1:8082", false), ("127.0.0.1:0", "127.0.0.1:8081", false),
  ])
  func `an upstream that is the admin listener is warned of`(
    _ admin: String, _ upstream: String, _ isReported: Bool
  ) throws {
    let found = try warnings("admin: {address: \"\(admin)\"}\nupstreams: {b: {url: \"http://\(upstream)\"}}")
    let text = "upstreams: b is the admin listener of this Semel, \(upstream): clients would read and change"
    #expect(found.map { $0.contains(text) } == (isReported ? [true] : []), "\(found)")
  }
}
