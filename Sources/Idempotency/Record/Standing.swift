/// Where a record stands, as the store saw it at one moment of its own clock.
public enum Standing: Sendable, Equatable {
  /// No record; or only the fence that `forget` left.
  case absent
  /// An owner holds it; what is left of the lease.
  case inFlight(leaseLeft: Milliseconds, attempt: Int)
  /// Possibly run, and the answer is lost; how long ago that came to be.
  case unknown(age: Milliseconds, attempt: Int)
  /// Ended without a final outcome: free to claim with the same payload.
  case released(attempt: Int)
  case completed(CompletedRecord)
  /// Retention is over, the tombstone is left.
  case expired(attempt: Int)
}
