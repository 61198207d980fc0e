// The claim of a route that may run requests without the store.
extension Exchange {
  /// The next step after the store's reply to a claim, by that reply and by what this process knows of the record.
  ///
  /// `known` becomes what it knows from now on: a step that runs the request has entered it there, so that of several
  /// deliveries that the store does not reply to one runs.
  public mutating func replied(
    _ reply: Result<ClaimOutcome, StoreError>, to request: ClaimRequest, known: inout KnownRecord?,
    now: BootInstant
  ) -> ClaimedAction {
    switch reply {
    case .success(let outcome):
      if case .unprotected = known?.standing, case .granted(let claim) = outcome {
        return refuseBesideUnprotected(claim)
      }
      known = .after(outcome, to: request, from: known, now: now)
      return claimed(outcome)
    case .failure(let error):
      let action = claimFailed(error, conflict: known?.conflict(with: request.fingerprint))
      if case .unreadable = error {
        known = known ?? KnownRecord(.taken(until: now + request.remember), fingerprint: nil)
      }
      if case .forwardUnprotected = action { known = .unprotected(request, from: known) }
      return action
    }
  }
}
