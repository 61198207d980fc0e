import Wire

/// What the backend itself says of its answer; the fields are taken off before the client sees it.
public struct Steering: Sendable, Equatable {
  /// `Idempotency-Outcome: final|retry|unknown`.
  public var outcome: OutcomeClass?
  /// `Idempotency-Retention: SECONDS`.
  public var retention: Milliseconds?

  public init(outcome: OutcomeClass? = nil, retention: Milliseconds? = nil) {
    self.outcome = outcome
    self.retention = retention
  }

  /// Reads the fields of an answer; one that says nothing valid is as if it were not there.
  public init(of head: MessageHead) {
    for field in head.fields {
      switch field.name {
      case .idempotencyOutcome: outcome = OutcomeClass(rawValue: head.string(field.valueRange))
      case .idempotencyRetention:
        // Bounded before it is multiplied: a year of seconds is more than any retention.
        retention = Int64(head.string(field.valueRange)).map { .seconds(max(0, min($0, 1 << 32))) }
      default: break
      }
    }
  }
}
