import Wire

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

  /// A look at the record after the verdict.
  public struct Look: Sendable {
    public var standing: Standing
    public var beganAt: BootInstant
    public var endedAt: BootInstant

    public init(_ standing: Standing, from beganAt: BootInstant, to endedAt: BootInstant) {
      self.standing = standing
      self.beganAt = beganAt
      self.endedAt = endedAt
    }
  }

  /// Decides on the verdict about the last attempt. The record stays as it is if there is no verdict, if another
  /// attempt has followed, or if the attempt's owner came back and lost its response again.
  ///
  /// - Parameters:
  ///   - look: A look at the record after the verdict; `nil` if there was none, or it failed.
  ///   - seen: The loss by the reply that led to the query.
  public mutating func probed(
    _ verdict: ProbeVerdict, look: Look?, seen: ClaimRequest.SeenLoss
  ) -> ProbedAction {
    guard case .probing(let attempt) = state else {
      invariantBroken("probed without a probe")
    }
    invariant(!hasProbed, "the backend is queried twice for one delivery")
    hasProbed = true
    guard verdict != .none, let look, let takeOver = takeOver(after: look, of: attempt, seen) else {
      state = .ended
      return .refuse(
        .outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: route.policy.upstream.settle)))
    }
    state = .applying(attempt: attempt, verdict, takesNothingOver: takeOver == .never)
    return .claim(takeOver)
  }

  /// The condition under which a verdict may be applied; `nil` if it is outdated.
  private func takeOver(
    after look: Look, of attempt: Int, _ seen: ClaimRequest.SeenLoss
  ) -> ClaimRequest.TakeOver? {
    // The verdict is about an unknown outcome, which this record no longer has. A free record is claimed under any
    // condition.
    guard case .unknown(let age, let latest) = look.standing else { return .never }
    // If this process stood still during the look, the moment of the look is uncertain.
    let wasPrompt = look.endedAt - look.beganAt < Milliseconds(age.count / 2)
    guard latest == attempt, age >= seen.minAge(at: look.beganAt), wasPrompt else { return nil }
    return .ofLoss(
      ClaimRequest.SeenLoss(age: age, seenAt: look.endedAt), afterSettle: route.policy.upstream.settle)
  }

  /// Decides on a claim that was granted after the verdict about an attempt.
  mutating func granted(
    _ claim: Claim, after attempt: Int, _ verdict: ProbeVerdict, takesNothingOver: Bool
  ) -> ClaimedAction {
    invariant(hasProbed, "a verdict counts although the backend was not queried")
    let isAboutLast = claim.attempt == attempt + 1
    // The backend's statement that it ran the attempt counts more than a release since. A new record is about another
    // attempt.
    let isReleased = isAboutLast && !claim.onlyRejectedSoFar && verdict.isApplied
    guard claim.followsUnknown || isReleased else { return own(claim) }
    // Later attempts have ended with a release, as the last one's owner knows better than this verdict.
    if takesNothingOver, !isAboutLast, !verdict.isApplied { return own(claim) }
    guard isAboutLast else {
      // The verdict is about another attempt than the one that is unknown now.
      state = .ended
      return .undo(
        .keptUnknown(claim), .outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: 0)))
    }
    guard case .applied(let outcome) = verdict else { return own(claim) }
    state = .settling(claim)
    return .adopt(
      claim,
      Completion(
        outcome: route.policy.recorded(outcome), retention: route.policy.retention,
        remember: route.policy.remember))
  }

  /// Decides on the store's reply to the completion with the backend's statement. Without a reply the outcome counts as
  /// unknown here: the store may have the completion, and otherwise the claim's lease lapses.
  ///
  /// A completion that the store already had is looked up by another claim: the reply to an earlier copy of the
  /// command, which held the record, was lost.
  public mutating func adopted(_ reply: Result<CompletionReply, StoreError>) -> ClaimedAction {
    guard case .settling = state else { invariantBroken("adopted outside of settling") }
    if case .success(let reply) = reply, case .done = reply.outcome, reply.record == nil {
      state = .following
      return .claimAgain
    }
    state = .ended
    // Nothing repeats it without a reply: the lease lapses, and the outcome is unknown as before.
    if case .success(let reply) = reply {
      if case .done = reply.outcome, let record = reply.record { return Self.replay(record) }
      if case .lost(.completed(let record)) = reply.outcome { return Self.replay(record) }
    }
    return .refuse(.outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: 0)))
  }
}
