import Idempotency
import Synchronization
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
