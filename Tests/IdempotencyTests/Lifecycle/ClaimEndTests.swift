import Idempotency
import NIOCore
import Testing
import Wire

/// The end of a claim.
struct ClaimEndTests {
  /// The default class of each status, from the contract's table.
  private static let classes: [(status: Int, outcome: OutcomeClass)] = [
    (200, .final), (201, .final), (301, .final), (400, .final), (404, .final), (409, .final),
    (500, .final), (501, .final), (401, .retry), (403, .retry), (407, .retry), (408, .retry), (421, .retry),
    (423, .retry), (425, .retry), (429, .retry), (503, .retry), (502, .unknown), (504, .unknown),
    (303, .final), (307, .retry), (308, .retry), (412, .retry), (419, .retry), (428, .retry), (422, .final),
    (520, .unknown), (524, .unknown), (527, .unknown), (521, .retry), (522, .retry), (523, .retry),
    (525, .retry), (526, .retry), (529, .retry), (530, .retry), (528, .final),
  ]

  @Test(arguments: classes)
  func `classifies a response by its status`(status: Int, outcome: OutcomeClass) {
    let action = Self.responded(status: status)
    switch outcome {
    case .final: #expect(action == .complete(retention: .seconds(86_400), remember: .seconds(172_800)))
    case .retry:
      #expect(action == .release([401, 403, 429].contains(status) ? .deleted : .remembered))
    case .unknown: #expect(action == .markUnknown)
    }
  }

  @Test func `keeps a record that has met more than rejections`() {
    #expect(
      Self.responded(status: 429, claim: .sample(attempt: 3, onlyRejectedSoFar: false))
        == .release(.remembered))
  }

  /// `RecordRun` keeps one of which a renewal may still be under way.
  @Test func `keeps a rejected record if a mark of loss may still be under way`() {
    var late = ClaimLifecycle(route: .sample())
    _ = late.claimed(.granted(.sample()))
    _ = late.failed(.timedOut)
    #expect(late.responded(.sample(status: 401)) == .release(.remembered))
  }

  @Test func `a 409 after an unknown attempt is unknown, unless the route or the backend decides otherwise`()
  {
    let claim = Claim.sample(attempt: 2, followsUnknown: true)
    #expect(Self.responded(status: 409, claim: claim) == .markUnknown)
    #expect(Self.responded(status: 412, claim: claim) == .markUnknown)
    let final = RespondedAction.complete(retention: .seconds(86_400), remember: .seconds(172_800))
    #expect(Self.responded(status: 409) == final)
    let listed = Route.sample { $0.outcomes = OutcomeTable(final: [.status(409)]) }
    #expect(Self.responded(status: 409, claim: claim, route: listed) == final)
    #expect(Self.responded(status: 409, steering: Steering(outcome: .final), claim: claim) == final)
  }

  /// A framework's refusal of a duplicate: 422 of Rails, 400 of Django, 500 where nobody catches it, and any other that
  /// is no success.
  @Test(arguments: [303, 400, 404, 422, 500, 501])
  func `after a lost outcome only a success or a named status is final`(status: Int) {
    let claim = Claim.sample(attempt: 2, followsUnknown: true)
    let final = RespondedAction.complete(retention: .seconds(86_400), remember: .seconds(172_800))
    #expect(Self.responded(status: status) == final)
    #expect(Self.responded(status: status, claim: claim) == .markUnknown)
    for success in [200, 201, 204] { #expect(Self.responded(status: success, claim: claim) == final) }
    #expect(Self.responded(status: 503, claim: claim) == .release(.remembered))
    let hundred = Route.sample { $0.outcomes = OutcomeTable(final: [.hundred(status / 100)]) }
    #expect(Self.responded(status: status, claim: claim, route: hundred) == .markUnknown)
    let named = Route.sample { $0.outcomes = OutcomeTable(final: [.status(status)]) }
    #expect(Self.responded(status: status, claim: claim, route: named) == final)
    #expect(Self.responded(status: status, steering: Steering(outcome: .final), claim: claim) == final)
  }

  private static let besideLost: [(status: Int, release: Release?)] = [
    (200, nil), (422, .remembered), (409, .remembered), (412, .remembered), (400, .remembered),
  ]

  @Test(arguments: besideLost)
  func `items beside one whose outcome was lost are released when all are refused`(
    status: Int, release: Release?
  ) {
    var beside = Self.owning()
    let action = beside.responded(.sample(status: status, isBesideUnknown: true))
    let final = RespondedAction.complete(retention: .seconds(86_400), remember: .seconds(172_800))
    #expect(action == release.map { .release($0) } ?? final)
    var lost = Self.owning(claim: .sample(attempt: 2, followsUnknown: true))
    #expect(
      lost.responded(.sample(status: status, isBesideUnknown: true))
        == (release == nil ? final : .markUnknown))
  }

  @Test func `a failed batch beside a lost outcome proves nothing of any item`() {
    var beside = Self.owning()
    #expect(beside.responded(.sample(status: 500, isBesideUnknown: true)) == .markUnknown)
    var listed = Self.owning(.sample { $0.outcomes = OutcomeTable(unknown: [.hundred(4)]) })
    #expect(listed.responded(.sample(status: 409, isBesideUnknown: true)) == .markUnknown)
  }

  @Test func `the backend's own field overrules the table`() {
    #expect(Self.responded(status: 200, steering: Steering(outcome: .retry)) == .release(.remembered))
    #expect(Self.responded(status: 200, steering: Steering(outcome: .unknown)) == .markUnknown)
    #expect(
      Self.responded(status: 503, steering: Steering(outcome: .final, retention: .seconds(60)))
        == .complete(retention: .seconds(60), remember: .seconds(172_800)))
  }

  @Test(arguments: [(0, 1), (60, 60), (86_400, 86_400), (1_000_000, 172_800)] as [(Int64, Int64)])
  func `the backend's retention stays between a second and remember`(requested: Int64, given: Int64) {
    #expect(
      Self.responded(status: 200, steering: Steering(retention: .seconds(requested)))
        == .complete(retention: .seconds(given), remember: .seconds(172_800)))
  }

  @Test(arguments: [404, 410])
  func `only a repeated DELETE that finds nothing has succeeded`(status: Int) {
    let wunderlist = Route.sample { $0.adopt(.wunderlist) }
    let deleted = RespondedAction.completeAsDeleted(retention: .seconds(86_400), remember: .seconds(172_800))
    let final = RespondedAction.complete(retention: .seconds(86_400), remember: .seconds(172_800))
    func action(
      _ status: Int, route: Route, steering: Steering = Steering(), followsUnknown: Bool = true,
      isDelete: Bool = true, isRelayed: Bool = false
    ) -> RespondedAction {
      var lifecycle = Self.owning(route, claim: .sample(attempt: 2, followsUnknown: followsUnknown))
      return lifecycle.responded(
        .sample(status: status, steering: steering, isDelete: isDelete, isRelayed: isRelayed))
    }
    #expect(action(status, route: wunderlist) == deleted)
    // The backend's own word counts more than the meaning of a status.
    #expect(action(status, route: wunderlist, steering: Steering(outcome: .final)) == deleted)
    let undecided = action(status, route: wunderlist, steering: Steering(outcome: .retry))
    #expect(undecided == .release(.remembered))
    let named = Route.sample {
      $0.adopt(.wunderlist)
      $0.outcomes = OutcomeTable(unknown: [.status(status)])
    }
    #expect(action(status, route: named) == .markUnknown)
    // An attempt whose end is known, one that was never sent for example, has deleted nothing.
    #expect(action(status, route: wunderlist, followsUnknown: false) == final)
    #expect(action(status, route: wunderlist, isDelete: false) == .markUnknown)
    #expect(action(status, route: wunderlist, isRelayed: true) == .markUnknown)
    #expect(action(status, route: .sample { $0.adopt(.stripe) }) == .markUnknown)
    #expect(action(409, route: wunderlist) == .markUnknown)
  }

  @Test func `a late response to a repeated DELETE is replaced like any other`() {
    let route = Route.sample { $0.adopt(.wunderlist) }
    var lifecycle = Self.owning(route, claim: .sample(attempt: 2, followsUnknown: true))
    _ = lifecycle.failed(.timedOut)
    let action = lifecycle.responded(.sample(status: 404, isDelete: true))
    #expect(action == .completeAsDeleted(retention: .seconds(86_400), remember: .seconds(172_800)))
    guard case .respond = lifecycle.stored(.done) else {
      Issue.record("a response that was stored was not passed on")
      return
    }
  }

  @Test func `an unsent request is released`() {
    var lifecycle = Self.owning()
    guard case .release(.remembered, let problem) = lifecycle.failed(.notSent("refused")) else {
      Issue.record("what was not sent was not released")
      return
    }
    #expect(problem.code == .upstreamUnreachable)
    #expect(problem.status == 502)
  }

  @Test func `a request for which no connection was free is released, and its client asked to come later`() {
    var lifecycle = Self.owning()
    guard case .release(.remembered, let problem) = lifecycle.failed(.busy("no connection was free")) else {
      Issue.record("what was not sent was not released")
      return
    }
    #expect(problem.code == .overloaded && problem.status == 503 && problem.isRetryable)
    #expect(problem.retryAfter == 1)
  }

  @Test func `a lost response is unknown`() {
    var lifecycle = Self.owning()
    guard case .markUnknown(let problem) = lifecycle.failed(.responseLost("reset")) else {
      Issue.record("a lost response was not unknown")
      return
    }
    #expect(problem.code == .outcomeUnknown)
    #expect(problem.status == 502)
  }

  /// A backend may go on running a request whose connection has ended, so that a take-over waits all the same.
  @Test(arguments: [(.hold, nil), (.retry, 30), (.reconcile, 30)] as [(RoutePolicy.OnUnknown, Int64?)])
  func `nobody waits for a late response once the connection has ended`(
    onUnknown: RoutePolicy.OnUnknown, seconds: Int64?
  ) {
    let route = Route.sample { $0.onUnknown = onUnknown }
    var closed = Self.owning(route)
    guard case .markUnknown(let problem) = closed.failed(.responseLost("reset")) else {
      Issue.record("a lost response was not unknown")
      return
    }
    #expect(problem.retryAfter == seconds && problem.isRetryable == (seconds != nil))
    var silent = Self.owning(route)
    guard case .listen(_, let problem) = silent.failed(.timedOut) else {
      Issue.record("a time-out ended the exchange")
      return
    }
    #expect(problem.retryAfter == 30 && problem.isRetryable)
  }

  /// Of each class, and for a backend that states its own in a head that can be read.
  @Test(arguments: [
    (201, nil, "complete 201"), (404, nil, "complete 404"), (503, nil, "release"), (502, nil, "unknown"),
    (503, "final", "complete 503"), (201, "unknown", "unknown"), (201, "retry", "release"),
  ])
  func `a response that cannot be read behind its status ends the record by the class of that`(
    status: Int, stated: String?, end: String
  ) throws {
    var head = MessageHead(start: .status(status, reason: 0..<0))
    head.append("Location", "/v1/orders/9", as: .location)
    if let stated { head.append("Idempotency-Outcome", stated, as: .idempotencyOutcome) }
    for isLate in [false, true] {
      var lifecycle = Self.owning()
      if isLate { _ = lifecycle.failed(.timedOut) }
      switch lifecycle.failed(
        .malformed(status: status, rule: "a rule"), after: stated == nil && isLate ? nil : head)
      {
      case .complete(let completion, let problem):
        let location = stated == nil && isLate ? nil : "/v1/orders/9"
        #expect(completion.outcome == .statusOnly(status: status, location: location))
        #expect(completion.retention == .seconds(86_400))
        #expect(problem == .responseNotKept(status: status, location: location))
        #expect(end == "complete \(status)")
      case .release(_, let problem):
        #expect(
          problem.isRetryable && problem.status == 502 && end == "release" && (status != 503 || !isLate))
      case .markUnknown(let problem):
        // Without its fields, a 503 may be an intermediary's that has sent the request.
        #expect(end == (status == 503 && isLate ? "release" : "unknown"))
        #expect(problem.code == .outcomeUnknown && problem.status == 502)
      case .listen, .giveUp:
        Issue.record("a response in hand was given up")
      }
      guard case .respond = lifecycle.stored(.done) else {
        Issue.record("the end was not stored")
        return
      }
    }
  }

  @Test func `a late response is still accepted after a time-out`() {
    var lifecycle = Self.owning()
    guard case .listen(let settle, let problem) = lifecycle.failed(.timedOut) else {
      Issue.record("a time-out ended the exchange")
      return
    }
    #expect(settle == .seconds(30))
    #expect(problem.status == 504)
    #expect(
      lifecycle.responded(.sample(status: 201))
        == .complete(retention: .seconds(86_400), remember: .seconds(172_800)))
  }

  @Test(arguments: [UpstreamFailure.timedOut, .responseLost("reset"), .notSent("closed")])
  func `listening ends when no response can come any more`(failure: UpstreamFailure) {
    var lifecycle = Self.owning()
    _ = lifecycle.failed(.timedOut)
    guard case .giveUp = lifecycle.failed(failure) else {
      Issue.record("listening went on")
      return
    }
  }

  @Test func `a fenced owner responds with the record that now stands`() {
    var replaying = Self.settling()
    guard case .replay(let record) = replaying.stored(.lost(.completed(.sample()))), record == .sample()
    else {
      Issue.record("another owner's outcome was not replayed")
      return
    }
    for outcome in [
      OwnerOutcome.lost(.absent), .lost(.released(attempt: 1)), .lost(.unknown(age: 5, attempt: 2)),
      .lost(.inFlight(leaseLeft: 1, attempt: 2)), .lost(.released(attempt: 2)),
      .lost(.expired(attempt: 2)), .replaced,
    ] {
      var refused = Self.settling()
      guard case .refuse(let problem) = refused.stored(outcome) else {
        Issue.record("a fenced owner responded although the store replied \(outcome)")
        continue
      }
      #expect(problem.code == .outcomeUnknown)
    }
  }

  @Test func `a record that cannot be written never lets a later delivery contradict the response`() {
    var hold = Self.settling()
    guard case .respondAndKeepStoring = hold.storingFailed() else {
      Issue.record("the client of a held route did not get its response")
      return
    }
    var retry = Self.settling(Route.sample { $0.onUnknown = .retry })
    guard case .refuseAndKeepStoring(let problem) = retry.storingFailed() else {
      Issue.record("the client of a route that retries got a response that may be contradicted")
      return
    }
    #expect(problem.code == .outcomeUnknown)
    #expect(problem.status == 502)
  }

  @Test func `a client gets a response of class unknown although the store did not reply to the mark`() {
    var lifecycle = Self.owning()
    #expect(lifecycle.responded(.sample(status: 502)) == .markUnknown)
    guard case .respond = lifecycle.markFailed() else {
      Issue.record("the response was not passed on")
      return
    }
  }

  typealias RespondedAction = ClaimLifecycle.RespondedAction

  static func owning(_ route: Route = .sample(), claim: Claim = .sample()) -> ClaimLifecycle {
    var lifecycle = ClaimLifecycle(route: route)
    _ = lifecycle.claimed(.granted(claim))
    return lifecycle
  }

  static func settling(_ route: Route = .sample()) -> ClaimLifecycle {
    var lifecycle = owning(route)
    _ = lifecycle.responded(.sample(status: 200))
    return lifecycle
  }

  static func responded(
    status: Int, steering: Steering = Steering(), claim: Claim = .sample(), route: Route = .sample()
  ) -> RespondedAction {
    var lifecycle = owning(route, claim: claim)
    return lifecycle.responded(.sample(status: status, steering: steering))
  }
}
