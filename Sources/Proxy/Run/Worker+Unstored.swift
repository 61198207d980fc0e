import Idempotency
import Logging
import Platform
import Telemetry
import Wire

// Outcomes that the store does not have yet.
extension Worker {
  /// The reply to a claim that this process knows without the store: an outcome, or that one is on its way to the store.
  @inline(__always)
  func knownReply(to id: RecordID, _ fingerprint: Fingerprint) -> ClaimReply? {
    if let outcome = store.knownOutcome(of: id, fingerprint) { return .success(outcome) }
    return unstoredReply(to: id, fingerprint)
  }

  /// The reply to a claim whose record's outcome is on its way from this process to the store; `nil` if none is. The
  /// claim waits for that, or fails with the store, as the store might grant it: it may have lost the record, or may let
  /// the claim take it over.
  @inline(__always)
  func unstoredReply(to id: RecordID, _ fingerprint: Fingerprint) -> ClaimReply? {
    environment.unstored.claim(of: id, fingerprint).map(reply(beside:))
  }

  @inline(never)
  private func reply(beside run: Claim) -> ClaimReply {
    environment.takeOvers.lasts(at: .now)
      ? .failure(.unavailable("an outcome of the record waits for the store"))
      // It looks again after this time, if the store wakes it no sooner.
      : .success(.taken(.inFlight(leaseLeft: 500, attempt: run.attempt)))
  }

  /// Declines a granted claim that was sent before an outcome of the same record began its way to the store; `nil` for
  /// any other reply.
  @inline(__always)
  func declined(_ reply: ClaimReply, of call: KeyedCall) -> ClaimLifecycle.ClaimedAction? {
    guard case .success(.granted(let claim)) = reply,
      environment.unstored.claim(of: claim.id, claim.fingerprint) != nil
    else { return nil }
    return decline(claim, of: call)
  }

  @inline(never)
  private func decline(_ claim: Claim, of call: KeyedCall) -> ClaimLifecycle.ClaimedAction {
    environment.logger.warning(
      "a granted request does not run: this process is storing its outcome",
      metadata: [
        "record": "\(claim.id.text)", "route": "\(call.route.policy.name)",
        "attempt": .stringConvertible(claim.attempt),
      ])
    return call.lifecycle.declined(claim)
  }
}
