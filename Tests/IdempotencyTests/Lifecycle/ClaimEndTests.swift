import Idempotency
import NIOCore
import Testing

/// The end of a claim.
struct ClaimEndTests {
  /// The default class of each status, from the contract's table.
  @Test(arguments: [
    (200, OutcomeClass.final), (201, .final), (301, .final), (400, .final), (404, .final), (409, .final),
    (500, .final), (501, .final), (401, .retry), (403, .retry), (407, .retry), (408, .retry), (421, .retry),
    (423, .retry), (425, .retry), (429, .retry), (503, .retry), (502, .unknown), (504, .unknown),
  ])
  func `classifies a response by its status`(status: Int, outcome: OutcomeClass) {
    let action = Self.responded(status: status)
    switch outcome {
    case .final: #expect(action == .complete(retention: .seconds(86_400), remember: .seconds(86_400)))
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

  @Test func `keeps a rejected record if a renewal or a mark of loss may still be under way`() {
    var renewed = ClaimLifecycle(route: .sample())
    _ = renewed.claimed(.granted(.sample()))
    #expect(renewed.responded(.sample(status: 401, isRenewed: true)) == .release(.remembered))
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
    let final = RespondedAction.complete(retention: .seconds(86_400), remember: .seconds(86_400))
    #expect(Self.responded(status: 409) == final)
    let listed = Route.sample { $0.outcomes = OutcomeTable(final: [.status(409)]) }
    #expect(Self.responded(status: 409, claim: claim, route: listed) == final)
    #expect(Self.responded(status: 409, steering: Steering(outcome: .final), claim: claim) == final)
    // It may be about another item of the same batch.
    for status in [409, 412] {
      var beside = Self.owning(.sample(), claim: .sample())
      #expect(beside.responded(.sample(status: status, isBesideUnknown: true)) == .markUnknown)
    }
    var other = Self.owning(.sample(), claim: .sample())
    #expect(other.responded(.sample(status: 422, isBesideUnknown: true)) == final)
  }

  @Test func `the backend's own field overrules the table`() {
    #expect(Self.responded(status: 200, steering: Steering(outcome: .retry)) == .release(.remembered))
    #expect(Self.responded(status: 200, steering: Steering(outcome: .unknown)) == .markUnknown)
    #expect(
      Self.responded(status: 503, steering: Steering(outcome: .final, retention: .seconds(60)))
        == .complete(retention: .seconds(60), remember: .seconds(86_400)))
  }

  @Test(arguments: [(0, 1), (60, 60), (86_400, 86_400), (1_000_000, 86_400)] as [(Int64, Int64)])
  func `the backend's retention stays between a second and remember`(requested: Int64, given: Int64) {
    #expect(
      Self.responded(status: 200, steering: Steering(retention: .seconds(requested)))
        == .complete(retention: .seconds(given), remember: .seconds(86_400)))
  }

  @Test func `the outcome of a route's last attempt is final`() {
    let route = Route.sample { $0.maxAttempts = 3 }
    // After two losses of the store's records, attempts begin at a higher number.
    for first in [1, 2 * Claim.attemptsPerGeneration + 1] {
      for attempt in [first, first + 1] {
        #expect(
          Self.responded(status: 503, claim: .sample(attempt: attempt), route: route)
            == .release(.remembered))
      }
      #expect(
        Self.responded(status: 503, claim: .sample(attempt: first + 2), route: route)
          == .complete(retention: .seconds(86_400), remember: .seconds(86_400)))
    }
  }

  @Test(arguments: [404, 410])
  func `only a repeated DELETE that finds nothing has succeeded`(status: Int) {
    let wunderlist = Route.sample { $0.adopt(.wunderlist) }
    let deleted = RespondedAction.completeAsDeleted(retention: .seconds(86_400), remember: .seconds(86_400))
    let final = RespondedAction.complete(retention: .seconds(86_400), remember: .seconds(86_400))
    func action(
      _ status: Int, attempt: Int = 2, route: Route, steering: Steering = Steering(),
      isDelete: Bool = true, isRelayed: Bool = false
    ) -> RespondedAction {
      var lifecycle = Self.owning(route, claim: .sample(attempt: attempt))
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
    let generation = Claim.attemptsPerGeneration
    #expect(action(status, attempt: generation + 2, route: wunderlist) == deleted)
    #expect(action(status, attempt: 1, route: wunderlist) == final)
    #expect(action(status, attempt: generation + 1, route: wunderlist) == final)
    #expect(action(status, route: wunderlist, isDelete: false) == final)
    #expect(action(status, route: wunderlist, isRelayed: true) == final)
    #expect(action(status, route: .sample { $0.adopt(.stripe) }) == final)
    #expect(action(409, route: wunderlist) == final)
  }

  @Test func `a late response to a repeated DELETE is replaced like any other`() {
    let route = Route.sample { $0.adopt(.wunderlist) }
    var lifecycle = Self.owning(route, claim: .sample(attempt: 2))
    _ = lifecycle.failed(.timedOut)
    let action = lifecycle.responded(.sample(status: 404, isDelete: true))
    #expect(action == .completeAsDeleted(retention: .seconds(86_400), remember: .seconds(86_400)))
    guard case .respond = lifecycle.stored(.done) else {
      Issue.record("a response that was stored was not passed on")
      return
    }
  }

  @Test func `an unsent request is released`() {
    var lifecycle = Self.owning()
    guard case .release(let problem) = lifecycle.failed(.notSent("refused")) else {
      Issue.record("what was not sent was not released")
      return
    }
    #expect(problem.code == .upstreamUnreachable)
    #expect(problem.status == 502)
  }

  @Test func `a request for which no connection was free is released, and its client asked to come later`() {
    var lifecycle = Self.owning()
    guard case .release(let problem) = lifecycle.failed(.busy("no connection was free")) else {
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
        == .complete(retention: .seconds(86_400), remember: .seconds(86_400)))
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
    var duplicate = Self.settling()
    guard case .becomeDuplicate = duplicate.stored(.lost(.inFlight(leaseLeft: Milliseconds(1), attempt: 2)))
    else {
      Issue.record("a fenced owner did not become a duplicate")
      return
    }
    guard case .wait = duplicate.claimed(.taken(.inFlight(leaseLeft: 1, attempt: 2))) else {
      Issue.record("a fenced owner could not claim again")
      return
    }
    guard case .markGrantUnknown = duplicate.claimed(.granted(.sample(attempt: 3))) else {
      Issue.record("a fenced owner ran again")
      return
    }
    for outcome in [
      OwnerOutcome.lost(.absent), .lost(.released(attempt: 1)), .lost(.unknown(age: 5, attempt: 2)),
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
