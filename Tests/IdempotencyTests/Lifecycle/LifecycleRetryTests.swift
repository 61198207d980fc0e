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
    #expect(lifecycle.paused(isRetrying: true, isRenewed: false) == .remembered)
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

  @Test func `max_attempts bounds retries, too`() {
    var unsent = Self.owning(.sample(attempt: 3)) { $0.maxAttempts = 3 }
    _ = unsent.failed(.notSent("refused"))
    #expect(Self.decide(&unsent, after: .notExecuted) == .stop(.exhausted))
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

  @Test func `a route without retries makes none`() {
    var lifecycle = Self.owning { $0.retries = nil }
    _ = lifecycle.responded(.sample(status: 503))
    #expect(Self.decide(&lifecycle) == .pass)
  }

  @Test func `a retry that is given up leaves the release as it was decided`() {
    var lifecycle = Self.owning()
    #expect(lifecycle.responded(.sample(status: 429)) == .release(.deleted))
    _ = Self.decide(&lifecycle, after: .response(status: 429, retryAfter: .none))
    var renewed = Self.owning()
    _ = renewed.responded(.sample(status: 429))
    #expect(lifecycle.paused(isRetrying: false, isRenewed: false) == .deleted)
    #expect(renewed.paused(isRetrying: false, isRenewed: true) == .remembered)
    guard case .respond = lifecycle.stored(.done) else {
      Issue.record("the client got no response")
      return
    }
  }

  /// (Renewed before the retry, number of the next attempt, release of its 429.)
  @Test(
    arguments: [(false, 2, .deleted), (true, 2, .remembered), (false, 3, .remembered)]
      as [(
        Bool, Int, Release
      )])
  func `a record that only met rejections is deleted after retries, too`(
    isRenewed: Bool, attempt: Int, release: Release
  ) {
    var lifecycle = Self.owning()
    _ = lifecycle.responded(.sample(status: 429))
    #expect(lifecycle.paused(isRetrying: true, isRenewed: isRenewed) == .remembered)
    _ = lifecycle.stored(.done)
    _ = lifecycle.claimed(.granted(.sample(attempt: attempt, onlyRejectedSoFar: false)))
    #expect(lifecycle.responded(.sample(status: 429)) == .release(release))
  }

  @Test func `a record that was lost during the pause is not claimed again`() {
    var lifecycle = Self.owning()
    _ = lifecycle.responded(.sample(status: 503))
    _ = lifecycle.paused(isRetrying: true, isRenewed: false)
    guard case .refuse(let problem) = lifecycle.stored(.lost(.unknown(age: 0, attempt: 1))) else {
      Issue.record("a lost record was claimed again")
      return
    }
    #expect(problem.code == .outcomeUnknown)
  }

  @Test func `without the store's reply to the release the client gets the last response`() {
    var lifecycle = Self.owning()
    _ = lifecycle.responded(.sample(status: 503))
    _ = lifecycle.paused(isRetrying: true, isRenewed: false)
    guard case .respond = lifecycle.releaseFailed() else {
      Issue.record("the last response was withheld")
      return
    }
  }
}
