import Idempotency
import Testing

/// The retries on the client's behalf, as the lifecycle of a claim permits them.
struct LifecycleRetryTests {
  private static func owning(
    _ claim: Claim = .sample(), _ change: (inout RoutePolicy) -> Void = { _ in }
  ) -> ClaimLifecycle {
    var lifecycle = ClaimLifecycle(
      route: .sample {
        $0.retries = RetryPolicy()
        change(&$0)
      })
    _ = lifecycle.claimed(.granted(claim))
    return lifecycle
  }

  private static func decide(
    _ lifecycle: inout ClaimLifecycle, after end: RetriableEnd = .response(status: 503, retryAfter: .none)
  ) -> RetryDecision {
    var random = SystemRandomNumberGenerator()
    return lifecycle.retry(after: end, elapsed: 0, using: &random)
  }

  private static func waits(_ decision: RetryDecision) -> Bool {
    if case .wait = decision { true } else { false }
  }

  @Test func `a response of class retry is followed by a claim of the next attempt`() {
    var lifecycle = Self.owning()
    #expect(lifecycle.responded(.sample(status: 503)) == .release(.remembered))
    #expect(Self.waits(Self.decide(&lifecycle)))
    #expect(lifecycle.beginRetry(inPlaceOf: .remembered) == .remembered)
    guard case .retry = lifecycle.stored(.done) else {
      Issue.record("the next attempt was not claimed")
      return
    }
    guard case .forward(let claim) = lifecycle.claimed(.granted(.sample(attempt: 2))) else {
      Issue.record("the next attempt did not run")
      return
    }
    #expect(claim.attempt == 2)
  }

  @Test func `a request that was not executed may be repeated`() {
    var lifecycle = Self.owning()
    guard case .release = lifecycle.failed(.notSent("refused")) else {
      Issue.record("the record was not released")
      return
    }
    #expect(Self.waits(Self.decide(&lifecycle, after: .notExecuted)))
  }

  @Test(arguments: [502, 504])
  func `no retry follows an unknown response`(status: Int) {
    var lifecycle = Self.owning { $0.retries?.on = [502, 504] }
    #expect(lifecycle.responded(.sample(status: status)) == .markUnknown)
    #expect(Self.decide(&lifecycle, after: .response(status: status, retryAfter: .none)) == .pass)
  }

  @Test(arguments: [UpstreamFailure.responseLost("cut"), .timedOut, .requestBody("cut")])
  func `no retry follows a lost response`(failure: UpstreamFailure) {
    var lifecycle = Self.owning()
    _ = lifecycle.failed(failure)
    #expect(Self.decide(&lifecycle, after: .notExecuted) == .pass)
    #expect(Self.decide(&lifecycle) == .pass)
  }

  @Test func `no retry follows a late response, whose client was refused`() {
    var lifecycle = Self.owning()
    _ = lifecycle.failed(.timedOut)
    #expect(lifecycle.responded(.sample(status: 503)) == .release(.remembered))
    #expect(Self.decide(&lifecycle) == .pass)
  }

  @Test func `a late response whose release finds no store ends the run`() {
    var lifecycle = Self.owning()
    _ = lifecycle.failed(.timedOut)
    #expect(lifecycle.responded(.sample(status: 503)) == .release(.remembered))
    guard case .respond = lifecycle.releaseFailed() else {
      Issue.record("the run goes on")
      return
    }
  }

  @Test(arguments: [OutcomeClass.final, .unknown])
  func `the backend's own class counts before the status`(outcome: OutcomeClass) {
    var lifecycle = Self.owning()
    _ = lifecycle.responded(.sample(status: 503, steering: Steering(outcome: outcome)))
    #expect(Self.decide(&lifecycle) == .pass)
  }

  @Test func `what was not sent counts neither towards max_attempts nor towards max`() {
    var lifecycle = Self.owning(.sample(attempt: 3)) {
      $0.maxAttempts = 3
      $0.retries?.max = 1
    }
    for attempt in 4...6 {
      _ = lifecycle.failed(.notSent("refused"))
      #expect(Self.waits(Self.decide(&lifecycle, after: .notExecuted)))
      #expect(lifecycle.beginRetry(inPlaceOf: .uncounted) == .uncounted)
      _ = lifecycle.stored(.done)
      _ = lifecycle.claimed(
        .granted(.sample(attempt: attempt, onlyRejectedSoFar: false, uncountedAttempts: attempt - 3)))
    }
    // The third one that is sent.
    guard case .complete = lifecycle.responded(.sample(status: 503)) else {
      Issue.record("the last attempt's response was not recorded")
      return
    }
  }

  @Test func `a busy backend is retried as often as max says, however often it was not reached`() {
    var lifecycle = Self.owning { $0.retries?.max = 1 }
    for attempt in 2...4 {
      _ = lifecycle.failed(.notSent("refused"))
      #expect(Self.waits(Self.decide(&lifecycle, after: .notExecuted)))
      _ = lifecycle.beginRetry(inPlaceOf: .remembered)
      _ = lifecycle.stored(.done)
      _ = lifecycle.claimed(.granted(.sample(attempt: attempt, onlyRejectedSoFar: false)))
    }
    _ = lifecycle.responded(.sample(status: 503))
    #expect(Self.waits(Self.decide(&lifecycle)))
    _ = lifecycle.beginRetry(inPlaceOf: .remembered)
    _ = lifecycle.stored(.done)
    _ = lifecycle.claimed(.granted(.sample(attempt: 5, onlyRejectedSoFar: false)))
    _ = lifecycle.responded(.sample(status: 503))
    #expect(Self.decide(&lifecycle) == .stop(.exhausted))
  }

  @Test func `attempts that were only rejected do not count towards max_attempts`() {
    var lifecycle = Self.owning(.sample(attempt: 3)) { $0.maxAttempts = 3 }
    guard case .release = lifecycle.responded(.sample(status: 429)) else {
      Issue.record("the rejection was recorded")
      return
    }
    var other = Self.owning(.sample(attempt: 3)) { $0.maxAttempts = 3 }
    guard case .complete = other.responded(.sample(status: 503)) else {
      Issue.record("the last attempt's response was not recorded")
      return
    }
  }

  /// The release after a lease that was renewed, or that was not.
  @Test(arguments: [Release.uncounted, .deleted])
  func `a rejection before a retry does not count towards max_attempts`(release: Release) {
    var lifecycle = Self.owning { $0.maxAttempts = 2 }
    #expect(lifecycle.responded(.sample(status: 429)) == .release(.deleted))
    #expect(Self.waits(Self.decide(&lifecycle, after: .response(status: 429, retryAfter: .none))))
    #expect(lifecycle.beginRetry(inPlaceOf: release) == .uncounted)
    _ = lifecycle.stored(.done)
    _ = lifecycle.claimed(.granted(.sample(attempt: 2, onlyRejectedSoFar: false, uncountedAttempts: 1)))
    #expect(lifecycle.responded(.sample(status: 503)) == .release(.remembered))
    #expect(Self.waits(Self.decide(&lifecycle)))
    #expect(lifecycle.beginRetry(inPlaceOf: .remembered) == .remembered)
  }

  @Test func `a route without retries makes none`() {
    var lifecycle = Self.owning { $0.retries = nil }
    _ = lifecycle.responded(.sample(status: 503))
    #expect(Self.decide(&lifecycle) == .pass)
  }

  @Test func `a retry that is given up leaves the release as it was decided`() {
    var lifecycle = Self.owning()
    #expect(lifecycle.responded(.sample(status: 429)) == .release(.deleted))
    _ = Self.decide(&lifecycle, after: .response(status: 429, retryAfter: .none))
    guard case .respond = lifecycle.stored(.done) else {
      Issue.record("the client got no response")
      return
    }
  }

  /// (Release that the retry replaces, of a lease that was not renewed or was; number of the next attempt; release of
  /// its 429.)
  @Test(
    arguments: [(.deleted, 2, .deleted), (.remembered, 2, .remembered), (.deleted, 3, .remembered)]
      as [(Release, Int, Release)])
  func `a record that only met rejections is deleted after retries, too`(
    replaced: Release, attempt: Int, release: Release
  ) {
    var lifecycle = Self.owning()
    _ = lifecycle.responded(.sample(status: 429))
    #expect(lifecycle.beginRetry(inPlaceOf: replaced) == .remembered)
    _ = lifecycle.stored(.done)
    _ = lifecycle.claimed(.granted(.sample(attempt: attempt, onlyRejectedSoFar: false)))
    #expect(lifecycle.responded(.sample(status: 429)) == .release(release))
  }

  /// (Time since the first attempt, and the time for which the delivery may wait where any duplicate may wait 20 s.)
  @Test(arguments: [(nil, 20), (5, 20), (12, 18), (30, 0), (31, -1)] as [(Int64?, Int64)])
  func `a delivery that has made an attempt waits no longer than until its last retry may begin`(
    elapsed: Int64?, span: Int64
  ) {
    let lifecycle = Self.owning { $0.waitTimeout = .seconds(30) }
    #expect(lifecycle.maxWait(.seconds(20), elapsed: elapsed.map { .seconds($0) }) == .seconds(span))
  }

  @Test func `a record that was lost during the pause is not claimed again`() {
    var lifecycle = Self.owning()
    _ = lifecycle.responded(.sample(status: 503))
    _ = lifecycle.beginRetry(inPlaceOf: .remembered)
    guard case .refuse(let problem) = lifecycle.stored(.lost(.unknown(age: 0, attempt: 1))) else {
      Issue.record("a lost record was claimed again")
      return
    }
    #expect(problem.code == .outcomeUnknown)
  }

  /// By a later owner, or by an operator.
  @Test(arguments: [2, 1])
  func `a record that was given back during the pause is claimed for the retry`(attempt: Int) {
    var lifecycle = Self.owning()
    _ = lifecycle.responded(.sample(status: 503))
    _ = lifecycle.beginRetry(inPlaceOf: .remembered)
    guard case .retry = lifecycle.stored(.lost(.released(attempt: attempt))) else {
      Issue.record("a retry of a record that is free was not made")
      return
    }
    guard case .forward = lifecycle.claimed(.granted(.sample(attempt: attempt + 1, onlyRejectedSoFar: false)))
    else {
      Issue.record("the next attempt did not run")
      return
    }
    var stopped = Self.owning()
    _ = stopped.responded(.sample(status: 503))
    guard case .respond = stopped.stored(.lost(.released(attempt: attempt))) else {
      Issue.record("the last response was withheld")
      return
    }
  }

  @Test func `without the store's reply to the release the client gets the last response`() {
    var lifecycle = Self.owning()
    _ = lifecycle.responded(.sample(status: 503))
    _ = lifecycle.beginRetry(inPlaceOf: .remembered)
    guard case .respond = lifecycle.releaseFailed() else {
      Issue.record("the last response was withheld")
      return
    }
  }
}
