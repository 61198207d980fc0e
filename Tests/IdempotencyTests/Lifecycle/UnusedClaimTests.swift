import Testing

@testable import Idempotency

/// The ends of claims by which nothing is sent.
struct UnusedClaimTests {
  private static func policy(maxAttempts: Int?) -> RoutePolicy {
    Route.sample { $0.maxAttempts = maxAttempts }.policy
  }

  /// A later payload may be another one, so that a record which the claim has made is deleted.
  @Test(
    arguments: [
      (.sample(), nil, .deleted), (.sample(), 3, .deleted),
      (.sample(attempt: 2, onlyRejectedSoFar: false), nil, .remembered),
      (.sample(attempt: 2, onlyRejectedSoFar: false), 3, .uncounted),
      (.sample(attempt: 3, followsUnknown: true, onlyRejectedSoFar: false), 3, .uncounted),
    ] as [(Claim, Int?, Release)])
  func `a granted claim gives its record back`(claim: Claim, maxAttempts: Int?, release: Release) {
    let unused = UnusedClaim.givenBack(claim, by: Self.policy(maxAttempts: maxAttempts))
    #expect(unused.end == .released(release) && unused.claim == claim && unused.isGranted)
  }

  @Test(arguments: [Release.remembered, .uncounted])
  func `a claim without a reply never deletes the record, which may be older`(release: Release) {
    let request = ClaimRequest.sample(owner: OwnerToken(high: 3, low: 4), unusedRelease: release)
    let unused = UnusedClaim.givenBack(request)
    #expect(unused.end == .released(release) && !unused.isGranted)
    #expect(unused.claim.owner == request.owner && unused.claim.id == request.id)
    #expect(unused.claim.fingerprint == request.fingerprint)
  }

  /// The request may have run before, whatever this claim found.
  @Test func `a record that must not become free is marked unknown`() {
    #expect(UnusedClaim.keptUnknown(.sample()).end == .unknown(nil))
  }

  /// It was taken over to apply a verdict, while this process runs the request without the store.
  @Test func `a claim that has taken an unknown record over does not make it free`() {
    let claim = Claim.sample(attempt: 2, followsUnknown: true, onlyRejectedSoFar: false)
    var lifecycle = ClaimLifecycle(
      route: .sample {
        $0.onUnknown = .reconcile
        $0.onStoreFailure = .open
      })
    lifecycle.state = .applying(attempt: 1, .absent, takesNothingOver: false)
    var known: KnownRecord? = KnownRecord(
      .unprotected(releasedUntil: nil), owner: OwnerToken(high: 3, low: 4), fingerprint: claim.fingerprint)
    let action = lifecycle.replied(
      .success(.granted(claim)), to: .sample(), isDown: false, known: &known,
      now: BootInstant(nanoseconds: 0))
    guard case .undo(let unused, _) = action else {
      Issue.record("\(action)")
      return
    }
    #expect(unused == .keptUnknown(claim))
  }
}
