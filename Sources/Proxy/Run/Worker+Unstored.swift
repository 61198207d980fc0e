import Idempotency
import Logging
import Telemetry
import Wire

// Outcomes that the store does not have yet.
extension Worker {
  /// The reply to a claim that this process knows without the store: an outcome, or that one is on its way to the store.
  /// The claim waits for that, or fails with the store, as the store might grant it: it may have lost the record.
  @inline(__always)
  func knownReply(to id: RecordID, _ fingerprint: Fingerprint) -> ClaimReply? {
    if let outcome = store.knownOutcome(of: id, fingerprint) { return .success(outcome) }
    return environment.takeOvers.reply(to: id, fingerprint)
  }

  /// Declines a granted claim that was sent before an outcome of the same record began its way to the store; `nil` for
  /// any other reply.
  @inline(__always)
  func declined(_ reply: ClaimReply, of call: KeyedCall) -> ClaimLifecycle.ClaimedAction? {
    guard case .success(.granted(let claim)) = reply,
      environment.takeOvers.isStoring(claim.id, claim.fingerprint)
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
