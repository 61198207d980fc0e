import Wire

/// The state machine of one keyed request's claim, from the first request for it to the end of its record. Performs no
/// I/O.
///
/// The runner passes in the results of the store and of the backend, and executes the actions returned. The rules are
/// those of the contract, sections 2 and 6. `Deliver` in Tests/Model/claim.pml models an owner's path through this
/// machine, without duplicates that wait, reconciliation and retries of Semel's own.
public struct ClaimLifecycle: ~Copyable {
  enum State {
    /// The store has not reported the record's state yet. Followed by `owning`, `following`, `probing`, or by the end:
    /// replayed, refused, unprotected.
    case claiming
    /// The store has reported the record: the delivery is a duplicate, or its own attempt has ended with a release. Its
    /// request must not run without a record. Followed by `owning`, `probing`, or by the end: replayed, refused.
    case following
    /// The record's outcome is unknown since this attempt, and the backend is being queried about it. Followed by
    /// `applying` or the end.
    case probing(attempt: Int)
    /// The backend has stated what became of that attempt, and the record is being claimed to apply the verdict. If
    /// `takesNothingOver` is true, a look after the verdict has found no unknown outcome. Followed by `owning`,
    /// `settling`, `following` or the end.
    case applying(attempt: Int, ProbeVerdict, takesNothingOver: Bool)
    /// This delivery owns the record and may send its request once. Followed by `listening`, `settling`, `releasing` or
    /// the end.
    case owning(Claim)
    /// The outcome is unknown since a time-out, and the backend may still respond. Followed by `settling`, by
    /// `following`, if another owner has the record, or by the end.
    case listening(Claim)
    /// The backend has responded, or its response is lost, and the store is being updated. Followed by the end, whoever
    /// has the record: the request is never sent again. A verdict that is stored may be followed by `following`.
    case settling(Claim)
    /// The request was certainly not executed, or its response has the class `retry`, and the record will be released.
    /// Followed by `retrying`, `following`, if another owner has the record, or the end.
    case releasing(Claim)
    /// The record is being released, and Semel makes the next attempt itself. Followed by `following` or the end.
    case retrying
    /// No decision is left.
    case ended
  }

  /// The route whose rules apply.
  let route: Route
  var state: State = .claiming
  /// The number of retries made on the client's behalf.
  var retriesMade = 0
  /// The number of those that follow an attempt of which nothing was sent.
  var unsentRetries = 0
  /// The number of the last attempt before a retry if it met only 401, 403, 429 or a persisted query that the server
  /// lacks, like every attempt before it.
  var rejectedAttempt: Int?
  /// Whether the backend has been queried about an unknown outcome.
  var hasProbed = false

  public init(route: Route) {
    self.route = route
  }
}

extension ClaimLifecycle {
  /// The runner's next step after the store's reply to a claim.
  public enum ClaimedAction: Sendable {
    case forward(Claim)
    case replay(CompletedRecord)
    /// Wait until the owner's delivery or its lease ends, then claim again.
    case wait(leaseLeft: Milliseconds)
    /// Claim again as another owner.
    case claimAgain
    case refuse(Problem)
    /// End the record of the claim that the store has granted, or may have, and refuse.
    case undo(UnusedClaim, Problem)
    /// Query the backend about the unknown outcome of the record's last attempt.
    ///
    /// `age`: the time since the loss.
    case probe(attempt: Int, age: Milliseconds)
    /// Complete the record with the outcome that the backend has stated, then replay it.
    case adopt(Claim, Completion)
    /// Make the fingerprint with this recipe and claim again.
    case compare(by: Recipe)
    /// Forward the request without a record, as the route prescribes for a store that is unavailable.
    ///
    /// `unused`: the claim, if the store may have granted it all the same. It is undone only if nothing was sent.
    /// Otherwise its lease lapses, which correctly leaves the outcome unknown.
    case forwardUnprotected(unused: UnusedClaim?)
  }

  /// Whether a claim is in progress.
  private var isClaimInProgress: Bool {
    switch state {
    case .claiming, .following, .applying: true
    default: false
    }
  }

  /// Decides on the store's reply to a claim.
  public mutating func claimed(_ outcome: ClaimOutcome) -> ClaimedAction {
    guard isClaimInProgress else { invariantBroken("claimed outside of claiming") }
    switch outcome {
    case .granted(let claim):
      guard case .applying(let attempt, let verdict, let takesNothingOver) = state else { return own(claim) }
      return granted(claim, after: attempt, verdict, takesNothingOver: takesNothingOver)
    case .taken(let standing):
      return taken(standing)
    case .mismatch:
      state = .ended
      return .refuse(.payloadMismatch(status: route.policy.mismatchStatus))
    case .otherRecipe(let recipe):
      state = .following
      return .compare(by: recipe)
    }
  }

  mutating func own(_ claim: Claim) -> ClaimedAction {
    state = .owning(claim)
    return .forward(claim)
  }

  /// Decides on a record that another delivery owns, or that has ended.
  private mutating func taken(_ standing: Standing) -> ClaimedAction {
    switch standing {
    case .completed(let record):
      state = .ended
      return Self.replay(record)
    case .inFlight(let leaseLeft, _):
      state = .following
      return .wait(leaseLeft: leaseLeft)
    case .unknown(let age, let attempt) where mayProbe(age: age):
      state = .probing(attempt: attempt)
      return .probe(attempt: attempt, age: age)
    case .unknown(let age, _):
      state = .ended
      return .refuse(.outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: age)))
    case .expired:
      state = .ended
      return .refuse(.keyExpired.with(status: route.policy.expiredStatus))
    case .absent, .released:
      // The record is free. A store grants a claim of such a record, so claiming again is enough.
      state = .following
      return .wait(leaseLeft: 0)
    }
  }

  /// Refuses a granted claim whose record's outcome is on its way from this process to the store, which has lost the
  /// record or has let the claim take it over. The record must not become free.
  public mutating func declined(_ claim: Claim) -> ClaimedAction {
    guard isClaimInProgress else { invariantBroken("declined outside of claiming") }
    state = .ended
    return .undo(.keptUnknown(claim), unknownOutcome)
  }

  /// Refuses a granted claim because another delivery of this process runs, or was lost, without a record that the
  /// store knows; `nil` if neither is the case.
  mutating func declined(_ claim: Claim, beside known: KnownRecord) -> ClaimedAction? {
    guard isClaimInProgress else { invariantBroken("declined outside of claiming") }
    guard known.state.isUnknownToStore else { return nil }
    // A record whose outcome was unknown must not become free by giving it back.
    if case .applying = state { return declined(claim) }
    state = .ended
    if known.conflict(with: claim.fingerprint) == .otherPayload {
      return .undo(
        .givenBack(claim, by: route.policy), .payloadMismatch(status: route.policy.mismatchStatus))
    }
    guard case .lost = known.state else {
      return .undo(.givenBack(claim, by: route.policy), .storeUnavailable())
    }
    return .undo(.keptUnknown(claim), unknownOutcome)
  }

  /// Decides on a claim that failed. A delivery may run unprotected only if the store answers nobody, has reported
  /// nothing of its record, and this process knows no conflict.
  ///
  /// - Parameters:
  ///   - error: The store's failure.
  ///   - isDown: Whether the store answers nobody (`mayOpen` says where that counts).
  ///   - conflict: The reason, known to this process, for which the delivery must not run without a record.
  public mutating func claimFailed(
    _ error: StoreError, of request: ClaimRequest, isDown: Bool, conflict: KnownRecord.Conflict? = nil
  ) -> ClaimedAction {
    let mayRunUnprotected: Bool
    switch state {
    case .claiming: mayRunUnprotected = isDown && route.policy.onStoreFailure == .open
    case .following: mayRunUnprotected = false
    case .applying:
      // To give the claim back would make an unknown record free. Its lease lapses instead.
      state = .ended
      return .refuse(.storeUnavailable())
    default: invariantBroken("claimFailed outside of claiming")
    }
    state = .ended
    let unused: UnusedClaim?
    switch error {
    case .unreadable: return .refuse(.storeUnreadable())
    case .busy: return .refuse(.overloaded(.busy))
    case .refused: return .refuse(.storeUnavailable())
    case .unavailable: unused = nil
    case .fateUnknown: unused = .givenBack(request)
    }
    if mayRunUnprotected, conflict == nil { return .forwardUnprotected(unused: unused) }
    let problem: Problem =
      mayRunUnprotected && conflict == .otherPayload
      ? .payloadMismatch(status: route.policy.mismatchStatus) : .storeUnavailable()
    return unused.map { .undo($0, problem) } ?? .refuse(problem)
  }

  /// Ends the claim of a duplicate that may not wait, or that has waited long enough, and returns its refusal.
  public mutating func gaveUpWaiting() -> Problem {
    guard isClaimInProgress else { invariantBroken("gaveUpWaiting outside of claiming") }
    state = .ended
    return .inFlight(retryAfter: Problem.defaultPause, status: route.policy.inFlightStatus)
  }

  /// The refusal of a delivery whose request may just have run.
  private var unknownOutcome: Problem { .outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: 0)) }

  static func replay(_ record: CompletedRecord) -> ClaimedAction {
    switch record.outcome {
    case .whole: .replay(record)
    case .statusOnly(let status, let location):
      .refuse(.responseNotKept(status: status, location: location))
    case .encoded: .refuse(.storeUnreadable())
    }
  }
}

// The claim of a route that may run requests without the store.
extension ClaimLifecycle {
  /// Refuses another payload than that of a run of which the store does not know; `nil` if this is none. It must not
  /// claim: if the reply were lost, the record would have its fingerprint.
  public mutating func refused(beside known: KnownRecord, _ fingerprint: Fingerprint) -> ClaimedAction? {
    guard isClaimInProgress, known.state.isUnknownToStore,
      known.conflict(with: fingerprint) == .otherPayload
    else { return nil }
    state = .ended
    return .refuse(.payloadMismatch(status: route.policy.mismatchStatus))
  }

  /// Whether the decision on a reply depends on whether the store answers anybody.
  public func mayOpen(after reply: ClaimReply) -> Bool {
    guard route.policy.onStoreFailure == .open, case .failure(let error) = reply else { return false }
    return switch error {
    case .unavailable, .fateUnknown: true
    case .busy, .refused, .unreadable: false
    }
  }

  /// Decides on the store's reply to a claim, together with the state of the record that this process knows.
  ///
  /// - Parameters:
  ///   - isDown: Whether the store answers nobody.
  ///   - known: The known record, which the call updates. A delivery that runs without the store is entered here, so
  ///     that a second one is refused.
  public mutating func replied(
    _ reply: ClaimReply, to request: ClaimRequest, isDown: Bool, known: inout KnownRecord?, now: BootInstant
  ) -> ClaimedAction {
    switch reply {
    case .success(let outcome):
      if case .granted(let claim) = outcome, let known, let action = declined(claim, beside: known) {
        return action
      }
      known = .after(outcome, to: request, from: known, now: now)
      return claimed(outcome)
    case .failure(let error):
      var action = claimFailed(
        error, of: request, isDown: isDown, conflict: known?.conflict(with: request.fingerprint))
      // The record must not become free for other nodes either. The claim's lease lapses, and it is unknown.
      if case .lost = known?.state, case .undo(_, let problem) = action { action = .refuse(problem) }
      if case .unreadable = error { known = known ?? .unreported(to: request, now: now) }
      if case .forwardUnprotected = action {
        invariant(isDown, "a request runs without its record while the store answers")
        known = .unprotected(request, from: known)
      }
      return action
    }
  }
}
