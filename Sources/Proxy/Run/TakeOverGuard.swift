import Idempotency
import Platform
import Synchronization
import Wire

/// Keeps a retry from running because a record could not be written: holds back the claims of this process that would
/// take over a record of unknown outcome (`on_unknown: retry` or `reconcile`).
///
/// A run whose end the store did not take has an outcome, while its record's lease lapses. The owner repeats the write
/// (`Worker.repeatInBackground`), in this process or in another one, so that once the store works again it is a race
/// between that write and a claim. Safe to use from any thread.
public final class TakeOverGuard: Sendable {
  /// The time after the store's last failure in which nothing is taken over.
  private let hold: Milliseconds
  private let unstored = Mutex<[RecordID: Int]>([:])
  /// The number of records in `unstored`, so that a claim needs no lock.
  private let count = Atomic<Int>(0)
  /// The nanoseconds of the store's last failure; `Int64.min` for none. Atomic, since every claim reads it.
  private let failedAt = Atomic<Int64>(.min)

  /// - Parameter callTime: The longest time of one call of the store.
  public init(callTime: Milliseconds = 500) { hold = WritePace.span(callTime: callTime) }

  /// Notes a run that has ended and whose outcome the store has not taken. `leave` must follow.
  func enter(_ id: RecordID) {
    unstored.withLock { $0[id, default: 0] += 1 }
    count.add(1, ordering: .sequentiallyConsistent)
  }

  func leave(_ id: RecordID) {
    unstored.withLock { records in
      let left = records[id, default: 0] - 1
      invariant(left >= 0, "a take-over is allowed again that was not held back")
      records[id] = left > 0 ? left : nil
    }
    count.subtract(1, ordering: .sequentiallyConsistent)
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
    let failedAt = failedAt.load(ordering: .relaxed)
    if failedAt != .min, now < BootInstant(nanoseconds: failedAt) + hold { return true }
    return count.load(ordering: .sequentiallyConsistent) > 0 && unstored.withLock { $0[id] != nil }
  }
}
