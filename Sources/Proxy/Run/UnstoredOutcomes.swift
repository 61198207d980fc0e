import Idempotency
import Logging
import Platform
import Synchronization
import Telemetry
import Wire

/// The runs of this process whose outcomes are on their way to the store. Claims of their records wait for them
/// (`Worker.unstoredReply`), since the store may grant one before it has the outcome. Safe to use from any thread.
final class UnstoredOutcomes: Sendable {
  /// The claims of these runs. A record that was forgotten meanwhile may have several.
  private let claims = Mutex<[RecordID: [Claim]]>([:])
  /// Their number, so that another claim needs no lock.
  private let count = Atomic<Int>(0)

  /// Whether there is none.
  var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

  /// Has other claims of the record wait until `leave`.
  func hold(_ claim: Claim) {
    claims.withLock { claims in
      guard place(of: claim, in: claims) == nil else { return }
      claims[claim.id, default: []].append(claim)
      count.add(1, ordering: .sequentiallyConsistent)
    }
  }

  /// Forgets a run whose record has its end. Takes no lock if no claim waits for any.
  func leave(_ claim: Claim) {
    guard !isEmpty else { return }
    claims.withLock { claims in
      guard let place = place(of: claim, in: claims) else { return }
      claims[claim.id]?.remove(at: place)
      if claims[claim.id]?.isEmpty == true { claims[claim.id] = nil }
      let left = count.subtract(1, ordering: .sequentiallyConsistent).newValue
      invariant(left >= 0, "more outcomes are stored than were on their way")
    }
  }

  private func place(of claim: Claim, in claims: [RecordID: [Claim]]) -> Int? {
    claims[claim.id]?.firstIndex { $0.owner == claim.owner }
  }

  /// The claim of the run for whose outcome one with the same payload waits; `nil` if there is none.
  @inline(__always)
  func claim(of id: RecordID, _ fingerprint: Fingerprint) -> Claim? {
    isEmpty ? nil : lookUp(id, fingerprint)
  }

  @inline(never)
  private func lookUp(_ id: RecordID, _ fingerprint: Fingerprint) -> Claim? {
    claims.withLock { $0[id]?.first { $0.fingerprint == fingerprint } }
  }
}

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
