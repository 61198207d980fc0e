// The retries that Semel makes on the client's behalf.
extension ClaimLifecycle {
  /// Decides on the next attempt after one whose record is about to be released.
  ///
  /// After any other end, an unknown one above all, the decision is `pass`: only `releasing` leads to a retry.
  ///
  /// - Parameter elapsed: The time since the first attempt of this delivery began.
  public mutating func retry(
    after end: RetriableEnd, elapsed: Milliseconds, using random: inout some RandomNumberGenerator
  ) -> RetryDecision {
    guard case .releasing(let claim, _) = state, let retries = route.policy.retries else { return .pass }
    let decision = retries.decision(
      after: end, made: retriesMade, elapsed: elapsed, limit: route.policy.waitTimeout, using: &random)
    if case .wait = decision, let max = route.policy.maxAttempts, claim.ordinal >= max {
      return .stop(.exhausted)
    }
    return decision
  }

  /// The release that follows the pause before a retry.
  ///
  /// - Parameters:
  ///   - isRetrying: Whether the retry is made. Otherwise the client gets the last response.
  ///   - isRenewed: Whether a renewal of the claim was ever requested.
  public mutating func paused(isRetrying: Bool, isRenewed: Bool) -> Release {
    guard case .releasing(let claim, let decided) = state else {
      preconditionFailure("ClaimLifecycle: paused without a release")
    }
    // A delayed copy of a renewal would make a deleted record anew.
    let release = isRenewed ? .remembered : decided
    guard isRetrying else {
      state = .releasing(claim, release)
      return release
    }
    retriesMade += 1
    rejectedAttempt = release == .deleted ? claim.attempt : nil
    state = .retrying
    // Attempts continue to count.
    return .remembered
  }

  /// Decides on a release to which the store gave no reply: the client gets what the attempt ended with, and no retry
  /// follows.
  public mutating func releaseFailed() -> StoredAction {
    switch state {
    // `settling` belongs to a late response, whose client has its refusal already.
    case .releasing, .retrying, .settling: state = .ended
    default: preconditionFailure("ClaimLifecycle: releaseFailed without a release")
    }
    return .respond
  }

  /// The class of a complete response to the request of a claim.
  ///
  /// - Parameter isBesideUnknown: Whether another item of the same batch follows an unknown outcome.
  public func outcomeClass(
    of status: Int, steering: Steering, to claim: Claim, isBesideUnknown: Bool = false
  ) -> OutcomeClass {
    route.policy.outcomeClass(
      of: status, steering: steering, claim: claim, isOnlyRejected: isOnlyRejected(by: status, to: claim),
      isBesideUnknown: isBesideUnknown)
  }

  /// Whether a final response is one that may be retried, and is final because `max_attempts` is reached.
  public func endsAttempts(status: Int, steering: Steering, to claim: Claim) -> Bool {
    route.policy.maxAttempts != nil
      && route.policy.ownClass(of: status, steering: steering, claim: claim) == .retry
  }

  /// Whether a final response to a DELETE means that an earlier attempt has deleted what it names. A response that is
  /// final only because no further attempt is allowed does not.
  public func meansDeleted(status: Int, steering: Steering, to claim: Claim) -> Bool {
    route.policy.meansDeleted(status: status, ordinal: claim.ordinal)
      && route.policy.ownClass(of: status, steering: steering, claim: claim) == .final
  }

  /// Whether this attempt and all before it met only 401, 403 or 429.
  func isOnlyRejected(by status: Int, to claim: Claim) -> Bool {
    [401, 403, 429].contains(status) && isOnlyRejected(before: claim)
  }

  /// Whether every attempt on the record so far, before the one of this claim, met only 401, 403 or 429.
  func isOnlyRejected(before claim: Claim) -> Bool {
    // A retry releases its record as remembered, so that attempts continue to count. Hence its claim does not show that
    // they met only rejections.
    claim.onlyRejectedSoFar || rejectedAttempt == claim.attempt - 1
  }
}
