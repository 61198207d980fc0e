import Idempotency
import NIOCore
import Testing

/// The claim lifecycle.
struct ClaimLifecycleTests {
  @Test func `forwards once the claim is granted`() {
    var lifecycle = ClaimLifecycle(route: .sample())
    guard case .forward(let claim) = lifecycle.claimed(.granted(.sample())) else {
      Issue.record("a granted claim was not forwarded")
      return
    }
    #expect(claim == .sample())
  }

  @Test func `replays a completed record that was kept`() {
    var lifecycle = ClaimLifecycle(route: .sample())
    guard case .replay(let record) = lifecycle.claimed(.taken(.completed(.sample()))) else {
      Issue.record("a completed record was not replayed")
      return
    }
    #expect(record == .sample())
  }

  @Test func `points to the result when the response was not kept`() {
    var lifecycle = ClaimLifecycle(route: .sample())
    let record = CompletedRecord.sample(.statusOnly(status: 201, location: "/v1/orders/7"))
    guard case .refuse(let problem) = lifecycle.claimed(.taken(.completed(record))) else {
      Issue.record("a response that was not kept was not refused")
      return
    }
    #expect(problem.code == .responseNotKept)
    #expect(problem.originalStatus == 201)
    #expect(problem.location == "/v1/orders/7")
  }

  @Test(arguments: [409, 422, 400])
  func `refuses another payload with the route's status`(status: Int) {
    var lifecycle = ClaimLifecycle(route: .sample { $0.mismatchStatus = status })
    guard case .refuse(let problem) = lifecycle.claimed(.mismatch) else {
      Issue.record("a mismatch was not refused")
      return
    }
    #expect(problem.code == .payloadMismatch)
    #expect(problem.status == status)
    #expect(!problem.isRetryable)
  }

  @Test func `a duplicate may claim again, and be granted a record that was released meanwhile`() {
    var lifecycle = ClaimLifecycle(route: .sample())
    guard case .wait(let left) = lifecycle.claimed(.taken(.inFlight(leaseLeft: 700, attempt: 1))) else {
      Issue.record("a duplicate did not wait")
      return
    }
    #expect(left == 700)
    guard case .forward = lifecycle.claimed(.granted(.sample(attempt: 2))) else {
      Issue.record("the duplicate did not become the owner")
      return
    }
  }

  @Test func `a duplicate that gave up is refused as in flight`() {
    var lifecycle = ClaimLifecycle(route: .sample())
    _ = lifecycle.claimed(.taken(.inFlight(leaseLeft: 700, attempt: 1)))
    let problem = lifecycle.gaveUpWaiting()
    #expect(problem.code == .inFlight && problem.status == 409)
    var other = ClaimLifecycle(route: .sample { $0.inFlightStatus = 425 })
    _ = other.claimed(.taken(.inFlight(leaseLeft: 700, attempt: 1)))
    #expect(other.gaveUpWaiting() == problem.with(status: 425))
    #expect(problem.isRetryable)
    #expect(problem.retryAfter == 1)
  }

  /// (on_unknown, age, retryable, Retry-After) with a settle of 30 s.
  @Test(
    arguments: [
      (RoutePolicy.OnUnknown.hold, 0, true, 30), (.hold, 29_500, true, 1), (.hold, 30_000, false, nil),
      (.retry, 10_000, true, 20), (.retry, 60_000, true, 1),
    ] as [(RoutePolicy.OnUnknown, Int64, Bool, Int64?)])
  func `an unknown outcome is retryable while it may settle`(
    onUnknown: RoutePolicy.OnUnknown, age: Int64, isRetryable: Bool, retryAfter: Int64?
  ) {
    var lifecycle = ClaimLifecycle(route: .sample { $0.onUnknown = onUnknown })
    guard case .refuse(let problem) = lifecycle.claimed(.taken(.unknown(age: Milliseconds(age), attempt: 1)))
    else {
      Issue.record("an unknown outcome was not refused")
      return
    }
    #expect(problem.code == .outcomeUnknown)
    #expect(problem.status == 409)
    #expect(problem.isRetryable == isRetryable)
    #expect(problem.retryAfter == retryAfter)
  }

  @Test func `an unreadable record is never run, not even with on_store_failure: open`() {
    var lifecycle = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    guard
      case .refuse(let problem) = lifecycle.claimFailed(.unreadable("version 9"), of: .sample(), isDown: true)
    else {
      Issue.record("an unreadable record was forwarded")
      return
    }
    #expect(problem.code == .storeUnreadable)
  }

  @Test func `a store that is down closes the route, or opens it with on_store_failure: open`() {
    var closed = ClaimLifecycle(route: .sample())
    guard case .refuse(let problem) = closed.claimFailed(.unavailable("refused"), of: .sample(), isDown: true)
    else {
      Issue.record("a closed route forwarded without the store")
      return
    }
    #expect(problem.code == .storeUnavailable)
    #expect(problem.isRetryable)
    var open = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    guard
      case .forwardUnprotected(unused: nil) = open.claimFailed(
        .unavailable("refused"), of: .sample(), isDown: true)
    else {
      Issue.record("an open route did not forward")
      return
    }
  }

  @Test(arguments: [StoreError.unavailable("full"), .fateUnknown("late"), .busy("others' responses")])
  func `a store that answers somebody opens no route`(error: StoreError) {
    var open = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    let needsVerdict = if case .busy = error { false } else { true }
    let mayOpen = open.mayOpen(after: .failure(error))
    #expect(mayOpen == needsVerdict)
    switch open.claimFailed(error, of: .sample(), isDown: false) {
    case .refuse(let problem), .undo(_, let problem):
      #expect(problem.isRetryable)
      #expect(problem.code == (needsVerdict ? .storeUnavailable : .overloaded))
    default: Issue.record("a route ran a request without a record while the store answers")
    }
    let closed = ClaimLifecycle(route: .sample())
    let mayClosedOpen = closed.mayOpen(after: .failure(error))
    #expect(!mayClosedOpen)
  }

  @Test func `a claim that may have been granted is released if it is not used`() {
    var closed = ClaimLifecycle(route: .sample())
    let request = ClaimRequest.sample()
    guard
      case .undo(let unused, let problem) = closed.claimFailed(.fateUnknown("cut"), of: request, isDown: true)
    else {
      Issue.record("a claim of unknown fate was kept")
      return
    }
    #expect(problem.code == .storeUnavailable && unused == .givenBack(request))
    // A request sent without a record must not free the one that it may have.
    var open = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    guard
      case .forwardUnprotected(let kept) = open.claimFailed(
        .fateUnknown("cut"), of: request, isDown: true)
    else {
      Issue.record("an open route did not forward")
      return
    }
    #expect(kept == .givenBack(request))
  }

  @Test func `a store that refuses claims opens no route`() {
    var lifecycle = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    expectRefusal(lifecycle.claimFailed(.refused("it may lose records"), of: .sample(), isDown: true))
  }

  /// The reports of a store to a delivery that claims again.
  @Test(
    arguments: [
      .taken(.inFlight(leaseLeft: 700, attempt: 1)), .taken(.released(attempt: 1)),
      .otherRecipe(Recipe(body: .raw)),
    ] as [ClaimOutcome], [StoreError.unavailable("refused"), .fateUnknown("cut")])
  func `a record that the store has reported once never runs without it`(
    outcome: ClaimOutcome, error: StoreError
  ) {
    var lifecycle = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    _ = lifecycle.claimed(outcome)
    expectRefusal(lifecycle.claimFailed(error, of: .sample(), isDown: true))
  }

  @Test func `a granted claim that is declined leaves its record unknown`() {
    var lifecycle = ClaimLifecycle(route: .sample())
    guard case .undo(let unused, let problem) = lifecycle.declined(.sample()) else {
      Issue.record("a record was made free whose outcome is on its way to the store")
      return
    }
    #expect(problem.code == .outcomeUnknown && unused == .keptUnknown(.sample()))
  }

  private func expectRefusal(
    _ action: ClaimLifecycle.ClaimedAction, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    switch action {
    case .refuse(let problem), .undo(_, let problem):
      #expect(problem.code == .storeUnavailable, sourceLocation: sourceLocation)
    default: Issue.record("\(action)", sourceLocation: sourceLocation)
    }
  }
}
