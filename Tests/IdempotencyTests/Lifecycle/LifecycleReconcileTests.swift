import Idempotency
import NIOCore
import Testing
import Wire

/// The reconciliation of unknown outcomes, as the lifecycle of a claim permits it. `settle` is 30 s.
struct LifecycleReconcileTests {
  private static let outcome = Outcome.whole(
    RecordedResponse(status: 201, fields: ByteBuffer(), body: ByteBuffer(string: "made")))

  private static func lifecycle() -> ClaimLifecycle {
    ClaimLifecycle(
      route: .sample {
        $0.onUnknown = .reconcile
        $0.reconcile = ReconcilePolicy(path: "/orders/{request_id}")
      })
  }

  /// A lifecycle that has the verdict about attempt 3.
  private static func applying(_ verdict: ProbeVerdict) -> ClaimLifecycle {
    var lifecycle = lifecycle()
    guard
      case .probe(attempt: 3, age: .seconds(30)) = lifecycle.claimed(
        .taken(.unknown(age: .seconds(30), attempt: 3)))
    else {
      Issue.record("the backend was not queried")
      return lifecycle
    }
    let same = Standing.unknown(age: .seconds(30), attempt: 3)
    guard case .claim(.ofLoss(_, afterSettle: .seconds(30))) = probed(&lifecycle, verdict, same) else {
      Issue.record("the verdict was not applied")
      return lifecycle
    }
    return lifecycle
  }

  /// The moment at which the loss was seen that led to the query.
  private static let start = BootInstant(nanoseconds: 0)
  private static let seen = ClaimRequest.SeenLoss(age: .seconds(30), seenAt: start)

  private static func probed(
    _ lifecycle: inout ClaimLifecycle, _ verdict: ProbeVerdict, _ standing: Standing,
    after elapsed: Milliseconds = 0, taking span: Milliseconds = 0
  ) -> ClaimLifecycle.ProbedAction {
    let look = ClaimLifecycle.Look(standing, from: start + elapsed, to: start + elapsed + span)
    return lifecycle.probed(verdict, look: look, seen: seen)
  }

  private static func claim(
    attempt: Int, followsUnknown: Bool = true, onlyRejectedSoFar: Bool = false
  ) -> Claim {
    .sample(attempt: attempt, followsUnknown: followsUnknown, onlyRejectedSoFar: onlyRejectedSoFar)
  }

  @Test func `before settle nothing is queried`() {
    var lifecycle = Self.lifecycle()
    guard case .refuse(let problem) = lifecycle.claimed(.taken(.unknown(age: 29_999, attempt: 3))) else {
      Issue.record("the backend was queried too early")
      return
    }
    #expect(problem.code == .outcomeUnknown && problem.isRetryable)
  }

  @Test func `without a verdict the delivery is refused, and may come again`() {
    var lifecycle = Self.lifecycle()
    _ = lifecycle.claimed(.taken(.unknown(age: .seconds(30), attempt: 3)))
    guard case .refuse(let problem) = lifecycle.probed(.none, look: nil, seen: Self.seen) else {
      Issue.record("an unknown outcome was decided without a verdict")
      return
    }
    #expect(problem.code == .outcomeUnknown && problem.isRetryable && problem.retryAfter == 1)
  }

  @Test(arguments: [ProbeVerdict.absent, .applied(outcome)])
  func `a verdict about an attempt that another one has followed changes nothing`(verdict: ProbeVerdict) {
    var lifecycle = Self.lifecycle()
    _ = lifecycle.claimed(.taken(.unknown(age: .seconds(30), attempt: 3)))
    let next = Standing.unknown(age: .seconds(30), attempt: 4)
    guard case .refuse(let problem) = Self.probed(&lifecycle, verdict, next) else {
      Issue.record("an outdated verdict was applied")
      return
    }
    #expect(problem.code == .outcomeUnknown && problem.isRetryable)
  }

  @Test func `a verdict without a look at the record changes nothing`() {
    var lifecycle = Self.lifecycle()
    _ = lifecycle.claimed(.taken(.unknown(age: .seconds(30), attempt: 3)))
    guard case .refuse = lifecycle.probed(.absent, look: nil, seen: Self.seen) else {
      Issue.record("a verdict was applied to nobody knows what")
      return
    }
  }

  @Test(arguments: [(Milliseconds(14_999), true), (15_000, false)])
  func `a look that stood still for half of the loss's age tells nothing`(span: Milliseconds, isPrompt: Bool)
  {
    var lifecycle = Self.lifecycle()
    let same = Standing.unknown(age: .seconds(30), attempt: 3)
    _ = lifecycle.claimed(.taken(same))
    if case .claim = Self.probed(&lifecycle, .absent, same, taking: span) {
      #expect(isPrompt)
    } else {
      #expect(!isPrompt)
    }
  }

  @Test(arguments: [
    Standing.inFlight(leaseLeft: 1, attempt: 3), .released(attempt: 3), .absent, .expired(attempt: 3),
  ])
  func `what is not unknown any more is not taken over by a verdict`(_ standing: Standing) {
    var lifecycle = Self.lifecycle()
    _ = lifecycle.claimed(.taken(.unknown(age: .seconds(30), attempt: 3)))
    guard case .claim(.never) = Self.probed(&lifecycle, .absent, standing) else {
      Issue.record("the record might be taken over by an outdated verdict")
      return
    }
  }

  @Test func `only the loss that was seen is taken over, however long the delivery stands still`() {
    var lifecycle = Self.lifecycle()
    let same = Standing.unknown(age: .seconds(30), attempt: 3)
    _ = lifecycle.claimed(.taken(same))
    guard case .claim(let takeOver) = Self.probed(&lifecycle, .absent, same, after: 0, taking: 10) else {
      Issue.record("the verdict was not applied")
      return
    }
    let seenAt = Self.start + 10
    #expect(takeOver.minAge(at: seenAt) == .seconds(30))
    // The loss is 130 s old by then. One that the stand-still has hidden is at most 100 s old.
    let minAge = takeOver.minAge(at: seenAt + .seconds(100))
    #expect(minAge.map { $0 > .seconds(100) && $0 < .seconds(130) } == true)
  }

  @Test(arguments: [(Milliseconds(40_000), true), (39_990, true), (39_000, false), (31_000, false)])
  func `a verdict from before a run that came back to life changes nothing`(age: Milliseconds, isSame: Bool) {
    var lifecycle = Self.lifecycle()
    _ = lifecycle.claimed(.taken(.unknown(age: .seconds(30), attempt: 3)))
    let standing = Standing.unknown(age: age, attempt: 3)
    let action = Self.probed(&lifecycle, .absent, standing, after: .seconds(10))
    if case .claim = action { #expect(isSame) } else { #expect(!isSame) }
  }

  @Test func `an applied outcome is stored, then replayed`() {
    var lifecycle = Self.applying(.applied(Self.outcome))
    guard case .adopt(_, let completion) = lifecycle.claimed(.granted(Self.claim(attempt: 4))) else {
      Issue.record("the outcome was not adopted")
      return
    }
    #expect(completion.outcome == Self.outcome)
    let reply = CompletionReply(outcome: .done, record: .sample(Self.outcome))
    guard case .replay(let record) = lifecycle.adopted(.success(reply)) else {
      Issue.record("the outcome was not replayed")
      return
    }
    #expect(record.outcome == Self.outcome)
  }

  @Test func `an absent request runs`() {
    var lifecycle = Self.applying(.absent)
    guard case .forward(let claim) = lifecycle.claimed(.granted(Self.claim(attempt: 4))) else {
      Issue.record("the request did not run")
      return
    }
    #expect(claim.attempt == 4)
  }

  @Test(arguments: [ProbeVerdict.absent, .applied(outcome)])
  func `a verdict about an earlier attempt is of no use`(verdict: ProbeVerdict) {
    var lifecycle = Self.applying(verdict)
    let claim = Self.claim(attempt: 5)
    guard case .undo(let unused, let problem) = lifecycle.claimed(.granted(claim)) else {
      Issue.record("a verdict was applied to another attempt")
      return
    }
    #expect(problem.code == .outcomeUnknown && unused == .keptUnknown(claim))
  }

  @Test(arguments: [(ProbeVerdict.absent, true), (.applied(outcome), false)])
  func `a record that later attempts have released runs, unless the backend has executed an earlier one`(
    verdict: ProbeVerdict, mayRun: Bool
  ) {
    var lifecycle = Self.lifecycle()
    _ = lifecycle.claimed(.taken(.unknown(age: .seconds(30), attempt: 3)))
    guard case .claim(.never) = Self.probed(&lifecycle, verdict, .released(attempt: 4)) else {
      Issue.record("a free record was to be taken over")
      return
    }
    switch lifecycle.claimed(.granted(Self.claim(attempt: 5))) {
    case .forward: #expect(mayRun)
    case .undo(let unused, _): #expect(!mayRun && unused.end == .unknown(nil))
    default: Issue.record("the claim was neither used nor marked")
    }
  }

  @Test(arguments: [(ProbeVerdict.absent, 4, false), (.absent, 1, true), (.applied(outcome), 1, true)])
  func `a record that is free meanwhile runs`(_ verdict: ProbeVerdict, attempt: Int, isNew: Bool) {
    var lifecycle = Self.applying(verdict)
    let free = Self.claim(attempt: attempt, followsUnknown: false, onlyRejectedSoFar: isNew)
    guard case .forward = lifecycle.claimed(.granted(free)) else {
      Issue.record("a free record did not run")
      return
    }
  }

  @Test func `a release meanwhile does not outweigh that the backend has executed it`() {
    var lifecycle = Self.applying(.applied(Self.outcome))
    let released = Self.claim(attempt: 4, followsUnknown: false)
    guard case .adopt(_, let completion) = lifecycle.claimed(.granted(released)) else {
      Issue.record("the outcome was not adopted")
      return
    }
    #expect(completion.outcome == Self.outcome)
  }

  @Test func `a verdict is given only if the record has it`() {
    let replies: [OwnerOutcome] = [.lost(.absent), .lost(.inFlight(leaseLeft: 1, attempt: 5)), .replaced]
    for reply in replies {
      var lifecycle = Self.applying(.applied(Self.outcome))
      _ = lifecycle.claimed(.granted(Self.claim(attempt: 4)))
      let stored = CompletionReply(outcome: reply, record: nil)
      guard case .refuse(let problem) = lifecycle.adopted(.success(stored)) else {
        Issue.record("an outcome was given that is not stored")
        return
      }
      #expect(problem.code == .outcomeUnknown)
    }
    var lifecycle = Self.applying(.applied(Self.outcome))
    _ = lifecycle.claimed(.granted(Self.claim(attempt: 4)))
    // The store has it from a copy of the command whose reply was lost: another claim finds it.
    guard case .claimAgain = lifecycle.adopted(.success(CompletionReply(outcome: .done, record: nil))) else {
      Issue.record("a stored outcome was not looked up")
      return
    }
    let record = CompletedRecord(
      outcome: Self.outcome, recordedAt: StoreInstant(milliseconds: 1),
      expiresAt: StoreInstant(milliseconds: 9), remaining: 8, attempt: 4)
    guard case .replay = lifecycle.claimed(.taken(.completed(record))) else {
      Issue.record("the stored outcome was not replayed")
      return
    }
  }

  @Test func `an owner that releases a record which another has given back passes its response on`() {
    var lifecycle = Self.lifecycle()
    _ = lifecycle.claimed(.granted(Self.claim(attempt: 2, followsUnknown: false)))
    _ = lifecycle.responded(.sample(status: 503))
    guard case .respond = lifecycle.stored(.lost(.released(attempt: 3))) else {
      Issue.record("the response of a free record was held back")
      return
    }
  }

  @Test func `a delivery queries once`() {
    var lifecycle = Self.applying(.absent)
    guard case .refuse = lifecycle.claimed(.taken(.unknown(age: .seconds(60), attempt: 4))) else {
      Issue.record("the backend was queried twice")
      return
    }
  }

  @Test(arguments: [StoreError.fateUnknown("cut"), .unavailable("down"), .refused("no")])
  func `a take-over that got no reply is never given back`(error: StoreError) {
    var lifecycle = Self.applying(.absent)
    guard case .refuse(let problem) = lifecycle.claimFailed(error, of: .sample(), isDown: true) else {
      Issue.record("an unknown record may have been made free")
      return
    }
    #expect(problem.code == .storeUnavailable)
  }

  @Test func `an outcome that could not be stored stays unknown`() {
    var lifecycle = Self.applying(.applied(Self.outcome))
    _ = lifecycle.claimed(.granted(Self.claim(attempt: 4)))
    guard case .refuse(let problem) = lifecycle.adopted(.failure(.fateUnknown("cut"))) else {
      Issue.record("an outcome was given that is not stored")
      return
    }
    #expect(problem.code == .outcomeUnknown)
  }
}
