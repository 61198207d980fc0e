import Idempotency
import Logging
import Telemetry
import Wire

// Outcomes that the store does not have yet, and those that it does not take.
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

  /// Reports an outcome that its record does not take. An operator has freed the record, by resolving it as not applied
  /// or forgetting it, so that a later delivery runs, or has run, beside this one. Or another owner has it.
  @inline(never)
  func noteRejected(_ outcome: OwnerOutcome, of completion: Completion, _ lease: LeaseKeeper<Store>) {
    let line = lease.metadata.merging(["status": "\(completion.outcome.status)"]) { own, _ in own }
    switch outcome {
    case .done: return
    case .lost(.absent), .replaced: noteFreed(line)
    // An operator's release keeps the number of the attempt.
    case .lost(.released(let attempt)) where attempt <= lease.claim.attempt: noteFreed(line)
    case .lost(.completed), .lost(.expired):
      environment.logger.warning(
        "a response came after its record had another outcome, and is not recorded", metadata: line)
    case .lost:
      if !lease.isLossNoted { metrics.add(.outcomesLost, route: lease.delivery.logEntry.routeNumber) }
      environment.logger.warning(
        "a response came after another owner had its record, and is not recorded: the request was applied, and may run again",
        metadata: line)
    }
  }

  private func noteFreed(_ line: Logger.Metadata) {
    environment.logger.error(
      "a response came after an operator had freed its record, and is not recorded: the request was applied, and may run again",
      metadata: line)
  }
}
