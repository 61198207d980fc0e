// The reconciliation of an unknown outcome with the backend.
extension ClaimLifecycle {
  /// Whether the backend is queried about an unknown record of this age: once for a delivery, and only after `settle`.
  func mayProbe(age: Milliseconds) -> Bool {
    route.policy.onUnknown == .reconcile && !hasProbed && age >= route.policy.upstream.settle
  }

  /// The runner's next step after the backend's verdict.
  public enum ProbedAction: Sendable {
    /// Claim again under this condition.
    case claim(ClaimRequest.TakeOver)
    case refuse(Problem)
  }

  /// Decides on the verdict about the last attempt. The record is not touched without a verdict, nor by one about an
  /// attempt that another one has followed, or whose owner has come back to life and lost its response since.
  ///
  /// - Parameters:
  ///   - standing: The state of the record after the verdict; `nil` if it is not known.
  ///   - elapsed: The time between the reply that led to the query and the look that found this state.
  public mutating func probed(
    _ verdict: ProbeVerdict, now standing: Standing? = nil, after elapsed: Milliseconds = 0
  ) -> ProbedAction {
    guard case .probing(let attempt, let age) = state else {
      preconditionFailure("ClaimLifecycle: probed without a probe")
    }
    hasProbed = true
    var isOutdated = false
    if case .unknown(let ageNow, let latest) = standing {
      // The age of the same loss grows with the time, but for what the clocks' rates may differ.
      let slack = Milliseconds(20 + elapsed.count / 100)
      isOutdated = latest != attempt || ageNow + slack < age + elapsed
    }
    guard verdict != .none, !isOutdated else {
      state = .ended
      return .refuse(
        .outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: route.policy.upstream.settle)))
    }
    state = .applying(attempt: attempt, verdict)
    return .claim(.afterSettle(route.policy.upstream.settle))
  }

  /// Decides on a claim that was granted after the verdict about an attempt.
  mutating func granted(_ claim: Claim, after attempt: Int, _ verdict: ProbeVerdict) -> ClaimedAction {
    let isAboutLast = claim.attempt == attempt + 1
    // A release meanwhile does not outweigh that the backend has run it. A record that is new has nothing to do with it.
    let isReleased = isAboutLast && !claim.onlyRejectedSoFar && verdict.isApplied
    guard claim.followsUnknown || isReleased else { return own(claim) }
    guard isAboutLast else {
      // The verdict is about another attempt than the one that is unknown now.
      state = .ended
      return .markGrantUnknown(claim, .outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: 0)))
    }
    guard case .applied(let outcome) = verdict else { return own(claim) }
    state = .settling(claim)
    return .adopt(
      claim,
      Completion(outcome: outcome, retention: route.policy.retention, remember: route.policy.remember))
  }

  /// Decides on the store's reply to the completion with the backend's statement. Without a reply the outcome stays
  /// unknown: the claim's lease lapses, or has stored it.
  public mutating func adopted(_ reply: Result<CompletionReply, StoreError>) -> ClaimedAction {
    guard case .settling = state else { preconditionFailure("ClaimLifecycle: adopted outside of settling") }
    state = .ended
    if case .success(let reply) = reply {
      if case .done = reply.outcome, let record = reply.record { return Self.replay(record) }
      if case .lost(.completed(let record)) = reply.outcome { return Self.replay(record) }
    }
    return .refuse(.outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: 0)))
  }
}
