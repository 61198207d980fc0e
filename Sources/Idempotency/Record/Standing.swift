/// The state of a record at one moment of the store's own clock.
public enum Standing: Sendable, Equatable {
  /// There is no record, or only the fence that `forget` left.
  case absent
  /// An owner holds the record; `leaseLeft` is the rest of its lease.
  case inFlight(leaseLeft: Milliseconds, attempt: Int)
  /// The request may have run, and its response is lost; `age` is the time since the loss.
  case unknown(age: Milliseconds, attempt: Int)
  /// The record ended without a final outcome, and is free to claim with the same payload.
  case released(attempt: Int)
  case completed(CompletedRecord)
  /// Retention is over, and the tombstone is left.
  case expired(attempt: Int)
}
