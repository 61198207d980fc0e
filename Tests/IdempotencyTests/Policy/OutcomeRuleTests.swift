import Idempotency
import NIOCore
import Testing
import Wire

/// The rules by which a route gives responses their classes.
struct OutcomeRuleTests {
  private static func rule(
    _ statuses: [ClosedRange<Int>] = [], header: [String: OutcomeRule.Wanted] = [:],
    json: [String: OutcomeRule.Wanted] = [:], is verdict: OutcomeRule.Verdict
  ) -> OutcomeRule {
    OutcomeRule(
      statuses: statuses, headers: header.map { OutcomeRule.Field(name: $0, wanted: $1) },
      members: json.compactMap { OutcomeRule.BodyMember(pointer: $0, wanted: $1) }, is: verdict)
  }

  private static func route(
    _ rules: [OutcomeRule], behind preset: OutcomePreset = .standard,
    _ change: (inout RoutePolicy) -> Void = { _ in }
  ) -> Route {
    .sample {
      $0.outcomes = OutcomeTable(preset, rules: rules)
      change(&$0)
    }
  }

  private static func head(_ status: Int, _ fields: [(String, String)] = []) -> MessageHead {
    var message = Request()
    message.fields = fields
    var head = message.head
    head.start = .status(status, reason: 0..<0)
    return head
  }

  private static func steering(
    _ status: Int, _ fields: [(String, String)] = [], body: String? = nil, on route: Route
  ) -> Steering {
    Steering(of: head(status, fields), body: body.map { ByteBuffer(string: $0) }, by: route.policy)
  }

  private static func outcome(
    _ status: Int, _ fields: [(String, String)] = [], body: String? = nil, on route: Route,
    claim: Claim = .sample()
  ) -> OutcomeClass {
    route.policy.outcomeClass(
      of: status, steering: steering(status, fields, body: body, on: route), claim: claim)
  }

  @Test func `the first rule that fits counts, and behind all of them the table`() {
    let route = Self.route([
      Self.rule([500...500], header: ["transient-error": .text("true")], is: .retry),
      Self.rule([500...599], is: .unknown), Self.rule([422...422, 424...426], is: .retry),
    ])
    #expect(Self.outcome(500, [("Transient-Error", "true")], on: route) == .retry)
    #expect(Self.outcome(500, [("Transient-Error", "false")], on: route) == .unknown)
    #expect(Self.outcome(500, on: route) == .unknown)
    #expect(Self.outcome(599, on: route) == .unknown)
    for status in [422, 424, 425, 426] { #expect(Self.outcome(status, on: route) == .retry, "\(status)") }
    for status in [201, 404, 421] {
      #expect(Self.outcome(status, on: route) == OutcomeTable()[status], "\(status)")
    }
    #expect(Self.outcome(700, on: route) == .unknown)
  }

  /// (The lines of the field, and whether it has the value and is there.)
  @Test(arguments: [
    ([], false, false), (["yes"], true, true), (["no"], false, true), (["yes", "no"], false, true),
    (["yes", "yes"], true, true), (["YES"], false, true), ([""], false, true),
  ])
  func `a field has the value on each of its lines`(lines: [String], hasValue: Bool, isThere: Bool) {
    let fields = lines.map { ("X-Final", $0) }
    let exact = Self.route([Self.rule(header: ["x-final": .text("yes")], is: .retry)])
    #expect(Self.outcome(500, fields, on: exact) == (hasValue ? .retry : .final))
    let present = Self.route([Self.rule(header: ["x-final": .present], is: .retry)])
    #expect(Self.outcome(500, fields, on: present) == (isThere ? .retry : .final))
  }

  private static let members: [(body: String?, pointer: String, wanted: OutcomeRule.Wanted, isMet: Bool)] = [
    (#"{"a":{"b":["x","y"]}}"#, "/a/b/1", .text("y"), true),
    (#"{"a":{"b":["x","y"]}}"#, "/a/b/2", .text("y"), false),
    (#"{"a":"y\u0041"}"#, "/a", .text("yA"), true), (#"{"a":12}"#, "/a", .text("12"), true),
    (#"{"a":12.0}"#, "/a", .text("12"), false), (#"{"a":true}"#, "/a", .text("true"), true),
    (#"{"a":false}"#, "/a", .text("true"), false), (#"{"a":null}"#, "/a", .text("null"), true),
    (#"{"a":null}"#, "/a", .present, false), (#"{"a":{}}"#, "/a", .present, true),
    (#"{"a":false}"#, "/a", .present, true), (#"{"a":""}"#, "/a", .present, true),
    (#"{"b":1}"#, "/a", .present, false), (#"{"a":{}}"#, "/a", .text("{}"), false),
    // A body that cannot be read with certainty meets no rule.
    (#"{"a":1,"a":2}"#, "/a", .present, false), (#"{"a":1,"b":2,"b":3}"#, "/a", .present, false),
    (#"{"a":1"#, "/a", .present, false), ("", "/a", .present, false), (nil, "/a", .present, false),
    ("a=1", "/a", .present, false), ("\n {\"a\" : 1 }\n", "/a", .text("1"), true),
  ]

  @Test(arguments: members)
  func `a member of the body is looked up`(
    body: String?, pointer: String, wanted: OutcomeRule.Wanted, isMet: Bool
  ) {
    let route = Self.route([Self.rule([200...200], json: [pointer: wanted], is: .retry)])
    #expect(Self.outcome(200, body: body, on: route) == (isMet ? .retry : .final))
    #expect(Self.outcome(200, [("Content-Encoding", "gzip")], body: body, on: route) == .final)
    #expect(Self.outcome(201, body: body, on: route) == .final)
  }

  /// A part of it may be missing.
  @Test func `a body that only the end of its connection delimits meets no rule, and the next one counts`() {
    let missing = #"{"errors":[{"extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}"#
    func outcome(_ status: Int, _ body: String, _ rules: [OutcomeRule], mayBeCut: Bool) -> OutcomeClass {
      let route = Self.route(rules) { $0.match.graphql = .mutation }
      let steering = Steering(
        of: Self.head(status), body: ByteBuffer(string: body), mayBeCut: mayBeCut, by: route.policy)
      return route.policy.outcomeClass(of: status, steering: steering, claim: .sample())
    }
    let byBody = Self.rule(json: ["/e": .present], is: .retry)
    for (behind, outcomes) in [
      (nil, (OutcomeClass.final, OutcomeClass.unknown)),
      (Self.rule([200...200, 502...502], is: .unknown), (.unknown, .unknown)),
      (Self.rule([200...200, 502...502], is: .final), (.final, .final)),
    ] as [(OutcomeRule?, (OutcomeClass, OutcomeClass))] {
      let rules = [byBody] + [behind].compactMap(\.self)
      #expect(outcome(200, #"{"e":1}"#, rules, mayBeCut: true) == outcomes.0)
      #expect(outcome(502, #"{"e":1}"#, rules, mayBeCut: true) == outcomes.1)
      #expect(outcome(200, #"{"e":1}"#, rules, mayBeCut: false) == .retry)
    }
    // The same holds for what a response says of its sender, unless the request may have run by it.
    #expect(outcome(200, missing, [], mayBeCut: true) == .final)
    #expect(outcome(200, missing, [], mayBeCut: false) == .retry)
    #expect(outcome(408, #"{"code":"canceled"}"#, [], mayBeCut: true) == .unknown)
  }

  @Test func `behind a rule that the body does not meet the next one counts`() {
    let route = Self.route([
      Self.rule([400...499], json: ["/code": .text("a"), "/more": .present], is: .deleted),
      Self.rule([422...422], json: ["/code": .text("a")], is: .unknown), Self.rule([400...499], is: .retry),
    ])
    #expect(Self.outcome(422, body: #"{"code":"a"}"#, on: route) == .unknown)
    #expect(Self.outcome(422, body: #"{"code":"b"}"#, on: route) == .retry)
    #expect(Self.outcome(422, on: route) == .retry)
  }

  @Test func `a body is read only where status and fields fit`() throws {
    let rules = try #require(
      OutcomeTable(
        .standard,
        rules: [
          Self.rule([422...422], header: ["x-a": .present], json: ["/a": .present], is: .retry),
          Self.rule([422...422], is: .unknown), Self.rule([500...500], json: ["/a": .present], is: .retry),
        ]
      ).rules)
    #expect(rules.readsBody(of: Self.head(422, [("X-A", "1")])))
    #expect(rules.readsBody(of: Self.head(500)))
    #expect(!rules.readsBody(of: Self.head(422)) && !rules.readsBody(of: Self.head(200)))
  }

  @Test func `a rule counts for more than what a response says of its sender`() {
    let route = Self.route([
      Self.rule([503...503, 409...409], is: .final), Self.rule([408...408], is: .retry),
    ])
    #expect(Self.outcome(503, [("Via", "1.1 varnish")], on: route) == .final)
    #expect(Self.outcome(409, [("Retry-After", "1")], on: route) == .final)
    #expect(Self.outcome(408, body: #"{"code":"canceled"}"#, on: route) == .retry)
    // If no rule fits, the signs count as without rules.
    let other = Self.route([Self.rule([503...503], header: ["x-a": .present], is: .final)])
    #expect(Self.outcome(503, [("Via", "1.1 varnish")], on: other) == .unknown)
    #expect(Self.outcome(409, [("Retry-After", "1")], on: other) == .retry)
  }

  @Test func `the backend's own word counts for more than a rule`() {
    let route = Self.route([Self.rule([422...422], is: .deleted), Self.rule([500...500], is: .final)])
    #expect(Self.outcome(422, [("Idempotency-Outcome", "final")], on: route) == .final)
    #expect(Self.outcome(500, [("Idempotency-Outcome", "retry")], on: route) == .retry)
    // A word that is not known does not let the request run again.
    #expect(Self.outcome(422, [("Idempotency-Outcome", "gone")], on: route) == .unknown)
    // A retry by the backend's word keeps the payload.
    #expect(Self.release(422, [("Idempotency-Outcome", "retry")], on: route) == .release(.remembered))
  }

  private static func release(
    _ status: Int, _ fields: [(String, String)] = [], body: String? = nil, on route: Route,
    claim: Claim = .sample(), isLate: Bool = false
  ) -> RespondedAction {
    var lifecycle = ClaimEndTests.owning(route, claim: claim)
    if isLate { _ = lifecycle.failed(.timedOut) }
    return lifecycle.responded(
      .sample(status: status, steering: steering(status, fields, body: body, on: route)))
  }

  typealias RespondedAction = ClaimLifecycle.RespondedAction

  /// As after a 401.
  @Test func `a deleted record is forgotten unless its attempts met more`() {
    let route = Self.route([Self.rule([422...422], json: ["/field": .present], is: .deleted)])
    let body = #"{"field":"email"}"#
    #expect(Self.release(422, body: body, on: route) == .release(.deleted))
    #expect(
      Self.release(422, body: "{}", on: route)
        == .complete(retention: .seconds(86_400), remember: .seconds(172_800)))
    let later = Claim.sample(attempt: 2, onlyRejectedSoFar: false)
    #expect(Self.release(422, body: body, on: route, claim: later) == .release(.remembered))
    #expect(Self.release(422, body: body, on: route, isLate: true) == .release(.remembered))
    // It never becomes final, and its attempt does not count.
    let limited = Self.route([Self.rule([422...422], is: .deleted)]) { $0.maxAttempts = 1 }
    #expect(Self.release(422, on: limited) == .release(.deleted))
    #expect(Self.release(422, on: limited, claim: later) == .release(.uncounted))
  }

  @Test func `a rule of class retry is final at the last attempt, and keeps its payload before`() {
    let route = Self.route([Self.rule([422...422], is: .retry)]) { $0.maxAttempts = 2 }
    #expect(Self.release(422, on: route) == .release(.remembered))
    let last = Claim.sample(attempt: 2, onlyRejectedSoFar: false)
    #expect(Self.outcome(422, on: route, claim: last) == .final)
    let lifecycle = ClaimEndTests.owning(route, claim: last)
    let isCounted = lifecycle.endsAttempts(status: 422, steering: Self.steering(422, on: route), to: last)
    #expect(isCounted)
  }

  @Test func `after a lost outcome a status counts that a rule names alone`() {
    let lost = Claim.sample(attempt: 2, followsUnknown: true, onlyRejectedSoFar: false)
    let conditions: [([ClosedRange<Int>], OutcomeClass)] = [
      ([422...422], .final), ([400...400, 422...422], .final), ([400...499], .unknown),
      ([421...422], .unknown),
      ([], .unknown),
    ]
    for (statuses, outcome) in conditions {
      let route = Self.route([Self.rule(statuses, header: ["x-a": .present], is: .final)])
      #expect(Self.outcome(422, [("X-A", "1")], on: route, claim: lost) == outcome, "\(statuses)")
      // A rule that the response does not meet says nothing of it.
      #expect(Self.outcome(422, on: route, claim: lost) == .unknown)
      #expect(Self.outcome(200, [("X-A", "1")], on: route, claim: lost) == .final)
      let steering = Self.steering(422, [("X-A", "1")], on: route)
      #expect(route.policy.outcomeClassAfterLoss(of: 422, steering: steering) == outcome)
    }
    let retried = Self.route([Self.rule([409...409], is: .retry)])
    #expect(Self.outcome(409, on: retried, claim: lost) == .retry)
    let deleted = Self.route([Self.rule([422...422], is: .deleted)])
    #expect(Self.release(422, on: deleted, claim: lost) == .release(.remembered))
  }

  @Test func `a malformed response that may meet a rule is unknown`() {
    func end(_ status: Int, _ head: MessageHead?, on route: Route) -> String {
      var lifecycle = ClaimEndTests.owning(route)
      return switch lifecycle.failed(.malformed(status: status, rule: "a rule"), after: head) {
      case .complete: "complete"
      case .release: "release"
      case .markUnknown: "unknown"
      case .listen, .giveUp: "none"
      }
    }
    let route = Self.route([
      Self.rule([500...500], header: ["x-ran": .present], is: .final),
      Self.rule([422...422], json: ["/ran": .present], is: .final), Self.rule([400...599], is: .retry),
    ])
    #expect(end(500, nil, on: route) == "unknown")
    #expect(end(500, Self.head(500), on: route) == "release")
    #expect(end(500, Self.head(500, [("X-Ran", "1")]), on: route) == "complete")
    #expect(end(422, Self.head(422), on: route) == "unknown")
    #expect(end(404, nil, on: route) == "release")
    #expect(end(201, nil, on: route) == "complete")
  }

  @Test func `a status has the class of the first rule that goes by it alone`() {
    let table = OutcomeTable(
      .standard,
      rules: [
        Self.rule([500...500], header: ["x-a": .present], is: .retry), Self.rule([422...422], is: .deleted),
        Self.rule([400...599], is: .unknown),
      ])
    #expect(table[422] == .retry && table.decided(422) == .deleted)
    #expect(
      table[500] == .unknown && table[503] == .unknown && table[404] == .unknown && table[200] == .final)
    #expect(table.decided(200) == nil && table.isListed(status: 503) && !table.isListed(status: 200))
    #expect(table.mayBeRetried(500) && !table.mayBeRetried(501) && table.mayBeRetried(307))
  }

  @Test func `of success only 2xx is final`() {
    let table = OutcomeTable(.successOnly)
    for status in 200..<600 { #expect(table[status] == (status < 300 ? .final : .retry), "\(status)") }
    let ruled = Self.route([Self.rule([404...404], is: .final)], behind: .successOnly)
    #expect(Self.outcome(404, on: ruled) == .final && Self.outcome(500, on: ruled) == .retry)
    #expect(Self.outcome(502, on: ruled) == .retry && Self.outcome(999, on: ruled) == .unknown)
  }

  @Test func `what Stripe does not save is released`() {
    let route = Self.route([], behind: .stripe)
    let parameter = #"{"error":{"type":"invalid_request_error","param":"amount","code":"parameter_missing"}}"#
    #expect(Self.release(400, body: parameter, on: route) == .release(.deleted))
    let executed = #"{"error":{"type":"invalid_request_error","code":"charge_already_refunded"}}"#
    #expect(Self.outcome(400, body: executed, on: route) == .final)
    #expect(Self.outcome(402, body: #"{"error":{"type":"card_error","param":"x"}}"#, on: route) == .final)
    #expect(Self.outcome(409, body: #"{"error":{"code":"idempotency_key_in_use"}}"#, on: route) == .retry)
    #expect(Self.outcome(409, body: "{}", on: route) == .final)
    #expect(Self.outcome(500, on: route) == .final)
  }

  @Test func `a persisted query that the server lacks is deleted behind any rule that calls it final`() {
    let missing =
      #"{"errors":[{"message":"x","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}"#
    let route = Self.route([Self.rule([200...299], is: .final)]) { $0.match.graphql = .mutation }
    #expect(Self.release(200, body: missing, on: route) == .release(.deleted))
  }

  @Test(arguments: [422, 503])
  func `a route may forget what it released`(status: Int) {
    let route = Route.sample {
      $0.outcomes = OutcomeTable(retry: [.status(422)])
      $0.released = .forget
    }
    #expect(Self.release(status, on: route) == .release(.deleted))
    let kept = Route.sample { $0.outcomes = route.policy.outcomes }
    #expect(Self.release(status, on: kept) == .release(.remembered))
    // Of a record whose payload may have run, nothing is forgotten.
    let lost = Claim.sample(attempt: 2, followsUnknown: true, onlyRejectedSoFar: false)
    #expect(Self.release(status, on: route, claim: lost) == .release(.remembered))
    #expect(Self.release(status, on: route, isLate: true) == .release(.remembered))
    #expect(
      Self.release(201, on: route) == .complete(retention: .seconds(86_400), remember: .seconds(172_800)))
  }
}
