import Idempotency
import Testing

/// The attempts that `max_attempts` counts, and what ends with the last of them.
struct MaxAttemptsTests {
  @Test func `the outcome of a route's last attempt is final`() {
    let route = Route.sample { $0.maxAttempts = 3 }
    // After two losses of the store's records, attempts begin at a higher number.
    for first in [1, 2 * Claim.attemptsPerGeneration + 1] {
      for attempt in [first, first + 1] {
        #expect(
          ClaimEndTests.responded(status: 503, claim: .sample(attempt: attempt), route: route)
            == .release(.remembered))
      }
      #expect(
        ClaimEndTests.responded(status: 503, claim: .sample(attempt: first + 2), route: route)
          == .complete(retention: .seconds(86_400), remember: .seconds(172_800)))
    }
  }

  @Test func `the last attempt after a lost outcome is unknown, whatever made it final`() {
    let route = Route.sample { $0.maxAttempts = 2 }
    let claim = Claim.sample(attempt: 2, followsUnknown: true)
    #expect(ClaimEndTests.responded(status: 503, claim: claim, route: route) == .markUnknown)
  }

  /// Four connections that were refused, then a busy backend.
  @Test func `max_attempts counts what was sent`() {
    let route = Route.sample { $0.maxAttempts = 3 }
    var unsent = ClaimEndTests.owning(route)
    guard case .release(.uncounted, _) = unsent.failed(.notSent("refused")) else {
      Issue.record("the attempt counts as one that was sent")
      return
    }
    for (attempt, unsent, isLast) in [(5, 4, false), (6, 4, false), (7, 4, true), (3, 0, true)] {
      let action = ClaimEndTests.responded(
        status: 503, claim: .sample(attempt: attempt, onlyRejectedSoFar: false, uncountedAttempts: unsent),
        route: route)
      let final = ClaimLifecycle.RespondedAction.complete(
        retention: .seconds(86_400), remember: .seconds(172_800))
      #expect(action == (isLast ? final : .release(.remembered)), "attempt \(attempt)")
    }
  }

  @Test func `a conflict with a backend's own keys that is final as the last attempt's is counted`() {
    let route = Route.sample {
      $0.behind = .ownKeys
      $0.maxAttempts = 1
    }
    let final = ClaimLifecycle.RespondedAction.complete(
      retention: .seconds(86_400), remember: .seconds(172_800))
    for (status, steering, attempt, isCounted) in [
      (409, Steering(), 1, true), (409, Steering(), 2, false), (409, Steering(outcome: .final), 1, false),
      (404, Steering(), 1, false),
    ] {
      let claim = Claim.sample(attempt: attempt)
      var lifecycle = ClaimEndTests.owning(route, claim: claim)
      #expect(lifecycle.responded(.sample(status: status, steering: steering)) == final)
      #expect(lifecycle.endsAttempts(status: status, steering: steering, to: claim) == isCounted)
    }
  }

  /// Whatever was met before: the last attempt, or one beyond it.
  @Test(arguments: [401, 403, 429], [3, 4])
  func `a rejection is never final, and does not count towards max_attempts`(status: Int, attempt: Int) {
    let route = Route.sample { $0.maxAttempts = 3 }
    let claim = Claim.sample(attempt: attempt, onlyRejectedSoFar: false)
    #expect(ClaimEndTests.responded(status: status, claim: claim, route: route) == .release(.uncounted))
    #expect(ClaimEndTests.responded(status: status, claim: claim) == .release(.remembered))
    let first = ClaimEndTests.responded(status: status, claim: .sample(attempt: 3), route: route)
    #expect(first == .release(.deleted))
    var late = ClaimEndTests.owning(route, claim: claim)
    _ = late.failed(.timedOut)
    #expect(late.responded(.sample(status: status)) == .release(.uncounted))
    let lost = Claim.sample(attempt: attempt, followsUnknown: true, onlyRejectedSoFar: false)
    #expect(ClaimEndTests.responded(status: status, claim: lost, route: route) == .release(.uncounted))
    // A status that the route or the backend calls final is so at any attempt.
    let final = ClaimLifecycle.RespondedAction.complete(
      retention: .seconds(86_400), remember: .seconds(172_800))
    #expect(
      ClaimEndTests.responded(status: status, steering: Steering(outcome: .final), claim: claim, route: route)
        == final)
  }
}
