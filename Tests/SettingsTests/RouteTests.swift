import Idempotency
import Settings
import TestSupport
import Testing
import Wire

struct RouteTests {
  /// Tests that a route of these members is read as the minimal route with these changes.
  private func expectRoute(
    _ members: String, equals change: (inout RoutePolicy) throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let settings = try load(route(members))
    var expected = RoutePolicy(name: "r", match: RouteMatch(), upstream: try #require(settings.onlyUpstream))
    expected.caller = CallerPolicy(parts: [.address])
    try change(&expected)
    #expect(settings.routes == [expected], sourceLocation: sourceLocation)
  }

  @Test func `the members that choose a request are read`() throws {
    try expectRoute(
      """
      match: {methods: [POST, PATCH], path: "/v1/orders/{id}", host: "*.API.example.com",
      headers: {X-Api-Version: "2"}, graphql: mutation}, upstream: backend, idempotency: optional
      """
    ) {
      $0.match = RouteMatch(
        methods: ["POST", "PATCH"], path: try PathPattern(parsing: "/v1/orders/{id}"),
        host: "*.api.example.com",
        headers: [RequiredHeader(name: "x-api-version", value: "2")], graphql: .mutation)
      $0.idempotency = .optional
    }
  }

  @Test(arguments: ["[::1]", "[0:0:0:0:0:0:0:1]", "[0::0001]", "[::0.0.0.1]"])
  func `an IPv6 address is compared in its canonical form`(host: String) throws {
    try expectRoute("match: {host: \"\(host)\"}") { $0.match = RouteMatch(host: "[::1]") }
  }

  @Test(arguments: ["[::1::2]", "[1:2:3]", "[1.2.3.4]", "[]", "[::1]:80]"])
  func `brackets around something else than an IPv6 address are refused`(host: String) {
    let message = "routes[0].match.host: must have an IPv6 address between [ and ], such as [2001:db8::1]"
    #expect(issues(route("match: {host: \"\(host)\"}")) == ["2:62: \(message)"])
  }

  @Test func `the members that identify a request are read`() throws {
    try expectRoute(
      """
      key: {from: ["header:X-Key", "query:k", "json:/a/b", "form:f", ["query:a", "json:/b"], payload],
      format: uuid, min_length: 2, max_length: 99}, endpoint: route, spelling: caseless, content_coding: pass, forward_key: drop,
      fingerprint: {body: auto, headers: [X-A, X-B], ignore: [/sent_at], explain: true}, mismatch_status: 422,
      in_flight_status: 425, echo_key: true, method_override: true
      """
    ) {
      $0.key.from = [
        .header("x-key"), .query("k"), .json("/a/b"), .form("f"), .composite([.query("a"), .json("/b")]),
        .payload,
      ]
      $0.key.format = .uuid
      $0.key.minLength = 2
      $0.key.maxLength = 99
      $0.endpoint = .route
      $0.spelling = .caseless
      $0.contentCoding = .pass
      $0.forwardKey = .drop
      $0.recipe = Recipe(body: .auto, headers: ["x-a", "x-b"], ignore: [.json("/sent_at")])
      $0.explainsMismatch = true
      $0.mismatchStatus = 422
      $0.inFlightStatus = 425
      $0.echoesKey = true
      $0.methodOverride = true
    }
  }

  @Test func `the field of a key is renamed, and shown so`() throws {
    try expectRoute("forward_key: {rename: X-Original-Key}") { $0.forwardKey = .rename("x-original-key") }
    #expect(
      try load(route("forward_key: {rename: X-A}")).shownJSON.contains(#""forward_key":{"rename":"x-a"}"#))
    #expect(try load(route("")).shownJSON.contains(#""forward_key":"keep""#))
  }

  @Test func `the members of a caller are read`() throws {
    let text = """
      routes:
        - name: r
          caller: {parts: ["header:Authorization", "header:X-Device-Id", "cookie:Session", "query:Account", "json:/a/b", address], anonymous: allow, schemes: [GNAP]}
      """
    let parts: [CallerPart] = [
      .header("authorization"), .header("x-device-id"), .cookie("Session"), .query("Account"), .json("/a/b"),
      .address,
    ]
    let expected = CallerPolicy(parts: parts, anonymous: .allow, schemes: ["gnap"])
    #expect(try load(upstream + text).routes.map(\.caller) == [expected])
  }

  @Test func `the members of records and outcomes are read`() throws {
    try expectRoute(
      """
      duplicates: reject, wait_timeout: 0s, max_waiters: 1, lease: 1s, retention: 1h, remember: 2h,
      unknown_retention: 3h, outcomes: {final: [503], retry: [500, 4xx], unknown: [5xx]}, on_unknown: retry,
      behind: own_keys, max_attempts: 5, on_store_failure: open
      """
    ) {
      $0.duplicates = .reject
      $0.waitTimeout = 0
      $0.maxWaiters = 1
      $0.lease = 1000
      $0.retention = 3_600_000
      $0.remember = 7_200_000
      $0.unknownRetention = 10_800_000
      $0.outcomes = OutcomeTable(
        final: [.status(503)], retry: [.status(500), .hundred(4)], unknown: [.hundred(5)])
      $0.behind = .ownKeys
      $0.onUnknown = .retry
      $0.maxAttempts = 5
      $0.onStoreFailure = .open
    }
  }

  @Test func `the members of bodies and responses are read`() throws {
    try expectRoute(
      """
      max_request_body: 2KiB, body_timeout: 90s, max_response_body: 0B, set_cookie: keep, response_timeout: 7s, stream: true,
      record: status, replay: {drop: [X-Request-Id, "X-Trace-*"], keep: [RateLimit, "X-RateLimit-*"]},
      cors: {origins: [https://shop.example], credentials: true}
      """
    ) {
      $0.maxRequestBody = 2048
      $0.recipe = Recipe(contentLimit: 2048)
      $0.bodyTimeout = 90_000
      $0.maxResponseBody = 0
      $0.setCookie = .keep
      $0.record = .status
      $0.replay.drop.names = ["x-request-id", "x-trace-*"]
      $0.replay.keep.names = ["ratelimit", "x-ratelimit-*"]
      $0.responseTimeout = 7000
      $0.stream = true
      $0.cors = CORSPolicy(origins: ["https://shop.example"], credentials: true)
    }
  }

  @Test func `a route overrides the defaults, member by member`() throws {
    let settings = try load(
      """
      upstreams: {a: {url: "http://a"}, b: {url: "http://b"}}
      defaults:
        upstream: b
        caller: {parts: [address]}
        key: {format: uuid, max_length: 36}
        outcomes: {retry: [500]}
        fingerprint: {ignore: [/t]}
        lease: 5s
      routes:
        - {name: one, match: {path: /o}, upstream: a, caller: {anonymous: allow}, key: {from: ["query:k"]}, lease: 6s}
        - {name: two, match: {path: /x}, outcomes: {unknown: [501]}, fingerprint: {body: none}}
      """)
    let (one, two) = (settings.routes[0], settings.routes[1])
    #expect(one.upstream.name == "a")
    #expect(two.upstream.name == "b")
    #expect(one.caller == CallerPolicy(parts: [.address], anonymous: .allow))
    #expect(two.caller == CallerPolicy(parts: [.address]))
    #expect(one.key.format == .uuid)
    #expect(one.key.maxLength == 36)
    #expect(one.key.from == [.query("k")])
    #expect(two.key.from == [.header("idempotency-key")])
    #expect(one.outcomes == OutcomeTable(retry: [.status(500)]))
    #expect(two.outcomes == OutcomeTable(retry: [.status(500)], unknown: [.status(501)]))
    #expect(one.recipe == Recipe(ignore: [.json("/t")]))
    #expect(two.recipe == Recipe(body: .none, ignore: [.json("/t")]))
    #expect(one.lease == 6000)
    #expect(two.lease == 5000)
  }

  @Test func `remember is twice retention if it is not set, and a day at least`() throws {
    #expect(try load(route("retention: 24h")).routes[0].remember == .seconds(48 * 3600))
    #expect(try load(route("retention: 48h")).routes[0].remember == .seconds(96 * 3600))
    #expect(try load(route("retention: 1h")).routes[0].remember == .seconds(24 * 3600))
    // Twice the longest span is none.
    let longest = try load(route("retention: 36500d")).routes[0]
    #expect(longest.remember == longest.retention)
    #expect(try load(route("retention: 2h, remember: 2h")).routes[0].remember == .seconds(2 * 3600))
  }

  @Test func `remember of the defaults counts before twice a route's retention`() throws {
    func remember(_ defaults: String) throws -> Milliseconds {
      try load(
        upstream + "defaults: {\(defaults)}\nroutes: [{name: r, retention: 26h, caller: {parts: [address]}}]"
      ).routes[0].remember
    }
    #expect(try remember("remember: 30h") == .seconds(30 * 3600))
    #expect(try remember("retention: 40h") == .seconds(52 * 3600))
  }

  @Test func `a route that is off needs no caller`() throws {
    for word in ["off", "\"off\"", "'off'"] {
      let settings = try load(upstream + "routes: [{name: r, idempotency: \(word)}]")
      #expect(settings.routes[0].idempotency == .off)
      #expect(settings.routes[0].caller == nil)
      #expect(settings.routes[0].match == RouteMatch())
    }
  }

  @Test func `the defaults may leave the caller's parts to the routes`() throws {
    let settings = try load(
      upstream + "defaults: {caller: {anonymous: allow}}\nroutes: [{name: r, caller: {parts: [address]}}]")
    // The callers that may lack a part belong to the parts, which the route names itself.
    #expect(settings.routes[0].caller == CallerPolicy(parts: [.address]))
  }

  @Test func `a route's own word for its caller counts before that of the defaults`() throws {
    func caller(_ defaults: String, _ own: String) throws -> CallerPolicy? {
      try load(
        upstream + "defaults: {caller: {\(defaults)}}\nroutes: [{name: r, caller: {\(own)}}]"
      ).routes[0].caller
    }
    let parts = "parts: [address], anonymous: allow"
    #expect(try caller(parts, "shared: true") == CallerPolicy(parts: []))
    #expect(try caller("shared: true", "parts: [address]") == CallerPolicy(parts: [.address]))
    #expect(try caller("shared: true", "") == CallerPolicy(parts: []))
    #expect(try caller(parts, "shared: false") == CallerPolicy(parts: [.address], anonymous: .allow))
    #expect(try load(route("retention: 1h")).routes[0].caller?.isShared == false)
  }

  @Test func `every member overrides the profile of its section, and a route's profile the defaults`() throws
  {
    func read(_ defaults: String, _ own: String) throws -> RoutePolicy {
      try load(
        upstream + "defaults: {caller: {parts: [address]}, \(defaults)}\nroutes: [{name: r, \(own)}]"
      ).routes[0]
    }
    let stripe = try read("mismatch_status: 422", "profile: stripe")
    #expect(stripe.profile == .stripe && stripe.mismatchStatus == 400 && stripe.idempotency == .optional)
    let own = try read("profile: stripe", "mismatch_status: 409, idempotency: required")
    #expect(own.profile == .stripe && own.mismatchStatus == 409 && own.idempotency == .required)
    let paypal = try read("retention: 1h", "profile: paypal")
    #expect(paypal.retention == .seconds(45 * 86400) && paypal.remember == .seconds(90 * 86400))
    let webhook = try read("retention: 1h", "profile: webhook")
    #expect(
      webhook.caller?.isShared == true && webhook.recipe.body == .none && webhook.retention == .seconds(3600))
    let named = try read("retention: 1h", "profile: webhook, caller: {parts: [\"header:X-Source\"]}")
    #expect(named.caller == CallerPolicy(parts: [.header("x-source")]))
    #expect(named.key.from == [.json("/id")])
  }

  @Test func `a route's profile takes the place of that of the defaults`() throws {
    func read(_ defaults: String, _ own: RouteProfile) throws -> RoutePolicy {
      try load(
        upstream + "defaults: {\(defaults)}\n"
          + "routes: [{name: r, profile: \(own.rawValue), caller: {parts: [address]}}]"
      ).routes[0]
    }
    for own in RouteProfile.allCases {
      let alone = try read("", own)
      for inherited in RouteProfile.allCases {
        #expect(try read("profile: \(inherited.rawValue)", own) == alone, "\(own) over \(inherited)")
      }
    }
    // The members that the defaults write out are theirs, whatever their profile says of them.
    let stated = "fingerprint: {body: none}, retention: 2h, idempotency: optional, mismatch_status: 409"
    for profile in ["", ", profile: webhook", ", profile: paypal"] {
      let policy = try read(stated + profile, .ietf)
      #expect(policy.recipe.body == .none && policy.retention == .seconds(7200))
      #expect(policy.idempotency == .optional && policy.mismatchStatus == 422)
    }
  }

  @Test func `a route with a profile of its own names its caller, unless the defaults do`() throws {
    let routes = "routes: [{name: r, profile: ietf}]"
    #expect(
      issues(upstream + "defaults: {profile: webhook}\n" + routes).map {
        $0.contains("routes[0].caller: is missing")
      }
        == [true])
    let shared = "defaults: {profile: webhook, caller: {shared: true}}\n"
    #expect(try load(upstream + shared + routes).routes[0].caller?.isShared == true)
    let fault = "defaults: {profile: webhook, caller: {shared: true}, max_waiters: 0}\n"
    #expect(issues(upstream + fault + routes).count == 1)
  }

  @Test func `a file needs no routes`() throws {
    #expect(try load(upstream).routes.isEmpty)
  }
}
