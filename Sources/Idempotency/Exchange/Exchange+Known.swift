// The claim of a route that may run requests without the store.
extension Exchange {
  /// Decides on the store's reply to a claim, together with the state of the record that this process knows.
  ///
  /// - Parameter known: The known record, which the call updates. A step that runs the request without the store enters
  ///   it here, so that only one of several deliveries without a reply from the store runs.
  public mutating func replied(
    _ reply: Result<ClaimOutcome, StoreError>, to request: ClaimRequest, known: inout KnownRecord?,
    now: BootInstant
  ) -> ClaimedAction {
    switch reply {
    case .success(let outcome):
      if case .granted(let claim) = outcome, let known, let action = declined(claim, beside: known) {
        return action
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
