import Idempotency
import NIOCore
import Testing
import Wire

/// The meaning of what a response says of its sender.
struct ResponseSignsTests {
  private static func outcome(
    _ status: Int, _ fields: [(String, String)] = [], body: String? = nil, route: Route = .sample(),
    claim: Claim = .sample()
  ) -> OutcomeClass {
    var message = Request()
    message.fields = fields
    var head = message.head
    head.start = .status(status, reason: 0..<0)
    let steering = Steering(of: head, body: body.map { ByteBuffer(string: $0) }, by: route.policy)
    return route.policy.outcomeClass(of: status, steering: steering, claim: claim)
  }

  @Test(arguments: [
    ("Via", "1.1 vegur"), ("via", "1.1 varnish"), ("X-Varnish", "32770"), ("X-Served-By", "cache-fra-1"),
    ("CF-RAY", "8a1-FRA"), ("x-envoy-upstream-service-time", "3"), ("X-Envoy-Overloaded", "true"),
    ("server", "envoy"), ("Server", "istio-envoy"), ("Server", "Cowboy"), ("Server", "vegur/1.0"),
    ("Server", "Varnish"), ("Server", "CloudFront"), ("Server", "Apache"),
    ("Server", "Apache/2.4.62 (Debian)"), ("X-Azure-Ref", "0abc"), ("Apigw-Requestid", "x"),
    ("X-Iinfo", "1-2"),
    ("Server", "AkamaiGHost"), ("Server", "Google Frontend"), ("Server", "LiteSpeed"),
  ])
  func `a 503 that an intermediary has made or passed on is unknown`(name: String, value: String) {
    #expect(Self.outcome(503, [("Content-Type", "text/plain"), (name, value)]) == .unknown)
    // Whoever says when to come back has refused the request. Varnish's own error page says so as well.
    let isOfVarnish = ["X-Varnish", "X-Served-By"].contains(name) || value == "Varnish"
    #expect(Self.outcome(503, [(name, value), ("Retry-After", "5")]) == (isOfVarnish ? .unknown : .retry))
    // The route's list counts more.
    for pattern in [OutcomeTable.Pattern.status(503), .hundred(5)] {
      let listed = Route.sample { $0.outcomes = OutcomeTable(retry: [pattern]) }
      #expect(Self.outcome(503, [(name, value)], route: listed) == .retry)
    }
    #expect(Self.outcome(503, [(name, value), ("Idempotency-Outcome", "retry")]) == .retry)
    #expect(Self.outcome(429, [(name, value)]) == .retry)
  }

  @Test(arguments: [
    ("Server", "nginx/1.25"), ("Server", "gunicorn"), ("X-Powered-By", "Via"), ("X-Env", "y"),
  ])
  func `a 503 of the origin is its refusal`(name: String, value: String) {
    #expect(Self.outcome(503, [(name, value)], body: "busy") == .retry)
  }

  @Test func `a 503 of a handler that runs on is unknown`() {
    let timeout = "<html><head><title>Timeout</title></head><body><h1>Timeout</h1></body></html>"
    #expect(Self.outcome(503, [("Content-Type", "text/html")], body: timeout) == .unknown)
    #expect(Self.outcome(503, [("Retry-After", "5")], body: timeout) == .retry)
    #expect(Self.outcome(503, body: timeout + "\n") == .retry)
  }

  private static let texts: [(text: String, outcome: OutcomeClass)] = [
    ("no healthy upstream", .retry), ("no healthy upstream\n", .retry),
    (reset + "connection failure", .retry),
    (
      reset
        + "remote connection failure, transport failure reason: delayed connect error: Connection refused",
      .retry
    ),
    (reset + "overflow", .retry),
    (reset + "connection termination", .unknown), (reset + "protocol error", .unknown),
    (reset + "local reset", .unknown), (reset + "connection failures", .unknown),
    // An earlier try of Envoy's own may have reached the backend.
    (
      "upstream connect error or disconnect/reset before headers. retried and the latest reset reason: "
        + "connection failure", .unknown
    ),
    ("{\"error\":\"no healthy upstream\"}", .unknown), ("", .unknown),
  ]

  @Test(arguments: texts)
  func `Envoy states by its text that nothing was sent`(text: String, outcome: OutcomeClass) {
    let fields = [("server", "envoy"), ("content-type", "text/plain")]
    #expect(Self.outcome(503, fields, body: text) == outcome)
    // A part of a body proves nothing.
    #expect(Self.outcome(503, fields) == .unknown)
  }

  @Test(arguments: [
    "upstream connect error or disconnect/reset before headers. reset reason: connection termination",
    #"{"code":14,"message":"error reading from server: EOF","details":[]}"#,
    #"{"code":14,"message":"transport is closing"}"#,
    #"{ "code": 14,  "message":"transport is closing" }"#,
  ])
  func `a body tells of a run where no field names its sender`(text: String) {
    #expect(Self.outcome(503, [("content-type", "text/plain")], body: text) == .unknown)
    #expect(Self.outcome(503, [("Retry-After", "1")], body: text) == .retry)
    let listed = Route.sample { $0.outcomes = OutcomeTable(retry: [.status(503)]) }
    #expect(Self.outcome(503, body: text, route: listed) == .retry)
  }

  @Test func `a call that could not be begun was not run`() {
    let text = #"{"code":14,"message":"connection error: desc = \"transport: Error while dialing\""}"#
    #expect(Self.outcome(503, body: text) == .retry)
    #expect(Self.outcome(503, body: #"{"code":140,"message":"transport is closing"}"#) == .retry)
    #expect(Self.outcome(503, body: Self.reset + "connection failure") == .retry)
  }

  @Test func `a text from behind Envoy is not Envoy's`() {
    let fields = [("server", "istio-envoy"), ("x-envoy-upstream-service-time", "35")]
    #expect(Self.outcome(503, fields, body: "no healthy upstream") == .unknown)
  }

  @Test(
    arguments: [
      (#"{"code":"deadline_exceeded","msg":"x"}"#, .unknown), (#"{"code":"canceled"}"#, .unknown),
      (#"{"code":"invalid_argument"}"#, .retry), ("Request Timeout", .retry), (nil, .retry),
    ] as [(String?, OutcomeClass)])
  func `a 408 of a call that was given up is unknown`(body: String?, outcome: OutcomeClass) {
    #expect(Self.outcome(408, body: body) == outcome)
    let listed = Route.sample { $0.outcomes = OutcomeTable(retry: [.status(408)]) }
    #expect(Self.outcome(408, body: body, route: listed) == .retry)
  }

  @Test(arguments: [("1", .retry), ("2", .unknown), ("", .unknown)] as [(String, OutcomeClass)])
  func `Envoy states no more than its count of tries lets it`(count: String, outcome: OutcomeClass) {
    let fields = [("server", "envoy"), ("X-Envoy-Attempt-Count", count)]
    for text in ["no healthy upstream", Self.reset + "connection failure"] {
      #expect(Self.outcome(503, fields, body: text) == outcome)
    }
  }

  @Test(arguments: ["", "never", "1.5"])
  func `a time that cannot be read proves nothing`(value: String) {
    #expect(Self.outcome(503, [("Via", "1.1 a"), ("Retry-After", value)]) == .unknown)
    #expect(Self.outcome(503, [("Via", "1.1 a"), ("Retry-After", "1"), ("Retry-After", "1")]) == .unknown)
    #expect(Self.outcome(409, [("Retry-After", value)]) == .final)
    let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    #expect(Self.outcome(503, [("Via", "1.1 a"), ("Retry-After", date)]) == .retry)
  }

  private static let reset = "upstream connect error or disconnect/reset before headers. reset reason: "

  @Test func `a 409 that states that the key is in use is that of a request in progress`() {
    let inUse = #"{"error":{"type":"idempotency_error","code":"idempotency_key_in_use"}}"#
    #expect(Self.outcome(409, body: inUse) == .retry)
    #expect(Self.outcome(409, body: inUse, claim: .sample(attempt: 2)) == .retry)
    #expect(Self.outcome(400, body: inUse) == .final)
    #expect(Self.outcome(409, body: #"{"error":{"code":"lock_timeout"}}"#) == .final)
    #expect(Self.outcome(409, body: inUse + String(repeating: " ", count: 1024)) == .final)
    #expect(Self.outcome(409, [("Content-Encoding", "gzip")], body: inUse) == .final)
    #expect(Self.outcome(409, body: nil) == .final)
    let listed = Route.sample { $0.outcomes = OutcomeTable(final: [.hundred(4)]) }
    #expect(Self.outcome(409, body: inUse, route: listed) == .final)
    // It may be the attempt that was lost.
    #expect(Self.outcome(409, body: inUse, claim: .sample(attempt: 2, followsUnknown: true)) == .unknown)
  }

  @Test func `a 409 that says when to come back is that of a request in progress`() {
    #expect(Self.outcome(409) == .final)
    #expect(Self.outcome(409, [("Retry-After", "1")]) == .retry)
    #expect(Self.outcome(422, [("Retry-After", "1")]) == .final)
    let listed = Route.sample { $0.outcomes = OutcomeTable(final: [.status(409)]) }
    #expect(Self.outcome(409, [("Retry-After", "1")], route: listed) == .final)
    // After a lost outcome it may be about the attempt that was lost.
    let claim = Claim.sample(attempt: 2, followsUnknown: true)
    #expect(Self.outcome(409, [("Retry-After", "1")], claim: claim) == .unknown)
  }

  @Test
  func `a first attempt's 409 of a backend with a table of keys of its own is that of a request in progress`()
  {
    let route = Route.sample { $0.behind = .ownKeys }
    #expect(Self.outcome(409, route: route) == .retry)
    #expect(Self.outcome(422, route: route) == .final)
    // From the second attempt on, it may be about one of Semel's own.
    #expect(Self.outcome(409, route: route, claim: .sample(attempt: 2)) == .final)
    #expect(
      Self.outcome(409, route: route, claim: .sample(attempt: 2, followsUnknown: true)) == .unknown)
    // A word of the route or the backend itself counts for more.
    let listed = Route.sample {
      $0.behind = .ownKeys
      $0.outcomes = OutcomeTable(final: [.hundred(4)])
    }
    #expect(Self.outcome(409, route: listed) == .final)
    #expect(Self.outcome(409, [("Idempotency-Outcome", "final")], route: route) == .final)
  }

  private static let missing =
    #"{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}"#

  private static let bodies: [(body: String, outcome: OutcomeClass)] = [
    (missing, .retry),
    (#"{"errors":[{"extensions":{"code":"PERSISTED_QUERY_NOT_SUPPORTED"}}]}"#, .retry),
    // Execution had begun, or there is another error.
    (#"{"data":null,"errors":[{"extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}"#, .final),
    (#"{"errors":[{"extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}},{"message":"x"}]}"#, .final),
    (#"{"errors":[{"extensions":{"code":"BAD_USER_INPUT"}}]}"#, .final),
    (#"{"errors":[{"extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}],"errors":[]}"#, .final),
    ("{}", .final), ("no JSON", .final),
  ]

  @Test(arguments: bodies)
  func `a GraphQL document that the server lacks was not run`(body: String, outcome: OutcomeClass) {
    let route = Route.sample { $0.match.graphql = .mutation }
    #expect(Self.outcome(200, body: body, route: route) == outcome)
    #expect(Self.outcome(200, [("Content-Encoding", "gzip")], body: body, route: route) == .final)
    #expect(Self.outcome(200, body: body) == .final)
  }

  @Test func `a record that met only a missing document is deleted, so that the whole one may follow`() {
    var head = Request().head
    head.start = .status(200, reason: 0..<0)
    let route = Route.sample { $0.match.graphql = .mutation }
    let steering = Steering(of: head, body: ByteBuffer(string: Self.missing), by: route.policy)
    var first = ClaimEndTests.owning(route)
    #expect(first.responded(.sample(status: 200, steering: steering)) == .release(.deleted))
    var later = ClaimEndTests.owning(route, claim: .sample(attempt: 2, onlyRejectedSoFar: false))
    #expect(later.responded(.sample(status: 200, steering: steering)) == .release(.remembered))
  }
}
