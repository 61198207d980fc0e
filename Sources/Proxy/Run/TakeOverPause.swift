import Idempotency
import Platform
import Synchronization

/// Holds claims back that would take over a record of unknown outcome (`on_unknown: retry` or `reconcile`) while the
/// store fails, and for a while after.
///
/// A run whose end the store did not take has an outcome, while its record's lease lapses, or the store loses the
/// record. The owner repeats the write (`OwnedRecord`), in this process or in another one, so that once the store works
/// again it is a race between that write and a claim. Safe to use from any thread.
public final class TakeOverPause: Sendable {
  /// The time after the store's last failure in which nothing is taken over.
  private let span: Milliseconds
  /// The nanoseconds of the store's last failure; `Int64.min` for none. Atomic, since every claim reads it.
  private let failedAt = Atomic<Int64>(.min)

  /// - Parameter callTime: The longest time of one call of the store.
  public init(callTime: Milliseconds = 500) { span = WritePace.span(callTime: callTime) }

  /// Notes that the store refused a command of an owner, or of a delivery that would become one, or gave no reply to
  /// it.
  func storeFailed(at now: BootInstant = .now) { failedAt.store(now.nanoseconds, ordering: .relaxed) }

  /// Whether the store has failed so shortly before that not every owner has repeated its write.
  func lasts(at now: BootInstant) -> Bool {
    let failedAt = failedAt.load(ordering: .relaxed)
    return failedAt != .min && now < BootInstant(nanoseconds: failedAt) + span
  }

  /// The claim as it may be made now.
  func permitted(_ request: ClaimRequest, now: @autoclosure () -> BootInstant = .now) -> ClaimRequest {
    guard request.takeOver != .never, lasts(at: now()) else { return request }
    return request.changed(takeOver: .never)
  }
}
