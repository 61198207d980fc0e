import Wire

// The end of a run, as the store has it.
extension ClaimLifecycle {
  /// The runner's next step after the store's reply to a completion, a release or a mark.
  public enum StoredAction: Sendable {
    /// Send the backend's response to the client or, where there is none, the refusal for its loss.
    case respond
    /// Send the backend's response to the client, and keep trying to store it.
    case respondAndKeepStoring
    /// Refuse because the outcome is unknown, and keep trying to store the response.
    case refuseAndKeepStoring(Problem)
    /// Replay the outcome of another owner, which is the one that counts.
    case replay(CompletedRecord)
    /// Claim again as a duplicate: the attempt was to be released, and another owner is in progress.
    case becomeDuplicate
    /// Claim again for the next attempt, which Semel makes on the client's behalf.
    case retry
    case refuse(Problem)
  }

  /// Decides on the store's reply to the completion, release or mark. The client of an owner that has lost its record
  /// gets what the record says.
  public mutating func stored(_ outcome: OwnerOutcome) -> StoredAction {
    let settled = state
    switch settled {
    case .settling, .releasing, .retrying: state = .ended
    default: invariantBroken("stored outside of settling")
    }
    switch (outcome, settled) {
    // A record that another owner has given back is as free as the release was to make it.
    case (.done, .retrying), (.lost(.released), .retrying):
      state = .following
      return .retry
    case (.done, _), (.lost(.released), .releasing): return .respond
    case (.lost(.completed(let record)), _): return Self.replacing(by: record)
    case (.lost(.inFlight), .releasing), (.lost(.inFlight), .retrying):
      state = .following
      return .becomeDuplicate
    case (.lost, _):
      return .refuse(.outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: 0)))
    case (.replaced, _):
      // A retry would get `payload_mismatch`, which tells the client to use a new key.
      return .refuse(.outcomeUnknown(retryAfter: nil))
    }
  }

  /// The response by another owner's outcome.
  private static func replacing(by record: CompletedRecord) -> StoredAction {
    switch replay(record) {
    case .replay(let record): .replay(record)
    case .refuse(let problem): .refuse(problem)
    default: invariantBroken("a completed record is replayed or refused")
    }
  }

  /// Decides on the store's reply to the mark of a run that has timed out; `nil` if the client is refused for that, and
  /// a late response is awaited. If another delivery has completed the record, that one's outcome counts.
  public mutating func marked(_ outcome: OwnerOutcome) -> StoredAction? {
    guard case .listening = state else {
      invariantBroken("marked outside of listening")
    }
    guard case .lost(.completed(let record)) = outcome else { return nil }
    state = .ended
    return Self.replacing(by: record)
  }

  /// Decides on a mark to which the store gave no reply: the lease lapses, which leaves the outcome unknown as well,
  /// and the client gets the backend's response, or the refusal for its loss.
  public mutating func markFailed() -> StoredAction {
    guard case .settling = state else {
      invariantBroken("markFailed outside of settling")
    }
    state = .ended
    return .respond
  }

  /// Decides on a completion that failed.
  public mutating func storingFailed() -> StoredAction {
    guard case .settling = state else {
      invariantBroken("storingFailed outside of settling")
    }
    state = .ended
    return switch route.policy.onUnknown {
    case .hold: .respondAndKeepStoring
    // A later delivery may run again, with another response.
    case .retry, .reconcile:
      .refuseAndKeepStoring(.responseLost(.broken, retryAfter: route.policy.retryAfterLoss(age: 0)))
    }
  }
}

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
    guard case .releasing(let claim) = state, let retries = route.policy.retries else { return .pass }
    let decision = retries.decision(
      after: end, made: retriesMade, unsent: unsentRetries, elapsed: elapsed,
      limit: route.policy.waitTimeout, using: &random)
    if case .wait = decision {
      if end == .notExecuted {
        unsentRetries += 1
      } else if let max = route.policy.maxAttempts, claim.sendings >= max {
        return .stop(.exhausted)
      }
    }
    return decision
  }

  /// Decides that the retry is made, and returns the release before it, which keeps the record: the numbers of attempts
  /// continue.
  ///
  /// - Parameter release: The release that the record would have had otherwise.
  public mutating func beginRetry(inPlaceOf release: Release) -> Release {
    guard case .releasing(let claim) = state else {
      invariantBroken("a retry without a release")
    }
    retriesMade += 1
    invariant(unsentRetries <= retriesMade, "more retries follow unsent attempts than are made")
    rejectedAttempt = release == .deleted ? claim.attempt : nil
    state = .retrying
    return release == .deleted ? route.policy.uncountedRelease : release
  }

  /// The time for which the delivery may wait for another one that has the record: no retry begins later than
  /// `wait_timeout` after the first attempt.
  ///
  /// - Parameters:
  ///   - span: The time for which any duplicate with its preference may wait.
  ///   - elapsed: The time since the first attempt of this delivery began; `nil` if it has made none.
  public func maxWait(_ span: Milliseconds, elapsed: Milliseconds?) -> Milliseconds {
    guard let elapsed else { return span }
    return min(span, route.policy.waitTimeout - elapsed)
  }

  /// Decides on a release to which the store gave no reply: the client gets what the attempt ended with, and no retry
  /// follows.
  public mutating func releaseFailed() -> StoredAction {
    switch state {
    // `settling` belongs to a late response, whose client has its refusal already.
    case .releasing, .retrying, .settling: state = .ended
    default: invariantBroken("releaseFailed without a release")
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
      of: status, steering: steering, claim: claim, isBesideUnknown: isBesideUnknown)
  }

  /// Whether a final response is one that may be retried, and is final because `max_attempts` is reached.
  public func endsAttempts(status: Int, steering: Steering, to claim: Claim) -> Bool {
    route.policy.maxAttempts != nil
      && route.policy.ownClass(of: status, steering: steering, attempt: claim.attempt) == .retry
  }

  /// Whether a final response to a DELETE means that an earlier attempt has deleted what it names. A response that is
  /// final only because no further attempt is allowed does not.
  public func meansDeleted(status: Int, steering: Steering, to claim: Claim) -> Bool {
    claim.followsUnknown && route.policy.meansDeleted(status: status)
      && route.policy.ownClass(of: status, steering: steering, attempt: claim.attempt) == .final
  }

  /// Whether every attempt on the record so far, before the one of this claim, met only rejections, or what the route
  /// forgets like them.
  func isOnlyRejected(before claim: Claim) -> Bool {
    // A retry keeps its record, so that the numbers of attempts continue. Hence its claim does not show that they met
    // only rejections.
    claim.onlyRejectedSoFar || rejectedAttempt == claim.attempt - 1
  }
}
