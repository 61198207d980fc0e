import Wire

/// The backend's instructions in its response. Their fields are removed from the response to the client.
public struct Steering: Sendable, Equatable {
  /// `Idempotency-Outcome: final|retry|unknown`.
  public var outcome: OutcomeClass?
  /// `Idempotency-Retention: SECONDS`.
  public var retention: Milliseconds?

  public init(outcome: OutcomeClass? = nil, retention: Milliseconds? = nil) {
    self.outcome = outcome
    self.retention = retention
  }

  /// Reads the fields of a response. An invalid value counts as a missing field.
  public init(of head: MessageHead) {
    for field in head.fields {
      switch field.name {
      case .idempotencyOutcome: outcome = OutcomeClass(rawValue: head.string(field.valueRange))
      case .idempotencyRetention:
        // The bound prevents an overflow in the conversion; 2^32 seconds are more than any retention.
        retention = Int64(head.string(field.valueRange)).map { .seconds(max(0, min($0, 1 << 32))) }
      default: break
      }
    }
  }
}
