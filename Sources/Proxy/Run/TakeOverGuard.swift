import Idempotency
import Platform
import Synchronization
import Wire

/// Keeps a retry from running because a record could not be written: has claims wait for an outcome that this process
/// is storing, and holds back those that would take over a record of unknown outcome (`on_unknown: retry` or
/// `reconcile`) while the store fails.
///
/// A run whose end the store did not take has an outcome, while its record's lease lapses, or the store loses the
/// record. The owner repeats the write (`OwnedRecord`), in this process or in another one, so that once
/// the store works again it is a race between that write and a claim. Safe to use from any thread.
public final class TakeOverGuard: Sendable {
  /// The outcome of a run on its way to the store, for as long as this object lives.
  final class UnstoredOutcome: Sendable {
    private let table: TakeOverGuard
    private let claim: Claim

    fileprivate init(_ table: TakeOverGuard, _ claim: Claim) {
      self.table = table
      self.claim = claim
    }

    deinit { table.leave(claim) }
  }

  /// The longest time after which a claim that waits for an outcome looks again, if the store wakes it no sooner.
  private static let waitForOutcome = Milliseconds(500)

  /// The time after the store's last failure in which nothing is taken over.
  private let hold: Milliseconds
  /// The claims of the runs whose outcomes are on their way to the store.
  private let unstored = Mutex<[RecordID: [Claim]]>([:])
  /// The number of those claims, so that another claim needs no lock.
  private let count = Atomic<Int>(0)
  /// The nanoseconds of the store's last failure; `Int64.min` for none. Atomic, since every claim reads it.
  private let failedAt = Atomic<Int64>(.min)

  /// - Parameter callTime: The longest time of one call of the store.
  public init(callTime: Milliseconds = 500) { hold = WritePace.span(callTime: callTime) }

  /// Notes a run that has ended, and whose outcome the store has not taken yet, until the returned object is released.
  func storing(_ claim: Claim) -> UnstoredOutcome {
    unstored.withLock { $0[claim.id, default: []].append(claim) }
    count.add(1, ordering: .sequentiallyConsistent)
    return UnstoredOutcome(self, claim)
  }

  private func leave(_ claim: Claim) {
    let left = unstored.withLock { records in
      let others = records[claim.id]?.filter { $0.owner != claim.owner } ?? []
      records[claim.id] = others.isEmpty ? nil : others
      return count.subtract(1, ordering: .sequentiallyConsistent).newValue
    }
    invariant(left >= 0, "an outcome is stored that was not on its way")
  }

  /// Whether no outcome is on its way to the store.
  var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

  /// Whether the outcome of a record is on its way to the store, for a claim with the same payload.
  @inline(__always)
  func isStoring(_ id: RecordID, _ fingerprint: Fingerprint) -> Bool {
    !isEmpty && run(of: id, fingerprint) != nil
  }

  /// The reply to a claim of a record whose outcome is on its way to the store; `nil` if there is none. While the store
  /// fails, the claim fails with it.
  @inline(__always)
  func reply(to id: RecordID, _ fingerprint: Fingerprint) -> ClaimReply? {
    isEmpty ? nil : run(of: id, fingerprint).map(reply(beside:))
  }

  private func reply(beside run: Claim) -> ClaimReply {
    hasFailed(before: .now)
      ? .failure(.unavailable("an outcome of the record waits for the store"))
      : .success(.taken(.inFlight(leaseLeft: Self.waitForOutcome, attempt: run.attempt)))
  }

  @inline(never)
  private func run(of id: RecordID, _ fingerprint: Fingerprint) -> Claim? {
    unstored.withLock { $0[id]?.first { $0.fingerprint == fingerprint } }
  }

  /// Notes that the store refused a command of an owner, or of a delivery that would become one, or gave no reply to
  /// it.
  func storeFailed(at now: BootInstant = .now) { failedAt.store(now.nanoseconds, ordering: .relaxed) }

  /// The claim as it may be made now.
  func permitted(_ request: ClaimRequest, now: @autoclosure () -> BootInstant = .now) -> ClaimRequest {
    guard request.takeOver != .never, isHeld(request.id, now()) else { return request }
    return request.changed(takeOver: .never)
  }

  private func isHeld(_ id: RecordID, _ now: BootInstant) -> Bool {
    if hasFailed(before: now) { return true }
    return !isEmpty && unstored.withLock { $0[id] != nil }
  }

  /// Whether the store has failed so shortly before that not every owner has repeated its write.
  private func hasFailed(before now: BootInstant) -> Bool {
    let failedAt = failedAt.load(ordering: .relaxed)
    return failedAt != .min && now < BootInstant(nanoseconds: failedAt) + hold
  }
}
