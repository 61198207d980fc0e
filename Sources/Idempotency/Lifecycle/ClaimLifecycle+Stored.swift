import Wire

// The end of a run, as the store has it.
extension ClaimLifecycle {
  /// The runner's next step after the store's reply to a completion, a release or a mark.
  public enum StoredAction: Sendable {
    /// Send the backend's response to the client or, where there is none, the refusal for its loss.
    case respond
    /// Send the backend's response to the client, and keep trying to store it.
    case respondAndKeepStoring
    /// Refuse because the outcome is unknown, and keep trying to store the response.
    case refuseAndKeepStoring(Problem)
    /// Replay the outcome of another owner, which is the one that counts.
    case replay(CompletedRecord)
    /// Claim again as a duplicate: the attempt was to be released, and another owner is in progress.
    case becomeDuplicate
    /// Claim again for the next attempt, which Semel makes on the client's behalf.
    case retry
    case refuse(Problem)
  }

  /// Decides on the store's reply to the completion, release or mark. The client of an owner that has lost its record
  /// gets what the record says.
  public mutating func stored(_ outcome: OwnerOutcome) -> StoredAction {
    let settled = state
    switch settled {
    case .settling, .releasing, .retrying: state = .ended
    default: invariantBroken("stored outside of settling")
    }
    switch (outcome, settled) {
    // A record that another owner has given back is as free as the release was to make it.
    case (.done, .retrying), (.lost(.released), .retrying):
      state = .following
      return .retry
    case (.done, _), (.lost(.released), .releasing): return .respond
    case (.lost(.completed(let record)), _): return Self.replacing(by: record)
    case (.lost(.inFlight), .releasing), (.lost(.inFlight), .retrying):
      state = .following
      return .becomeDuplicate
    case (.lost, _):
      return .refuse(.outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: 0)))
    case (.replaced, _):
      // A retry would get `payload_mismatch`, which tells the client to use a new key.
      return .refuse(.outcomeUnknown(retryAfter: nil))
    }
  }

  /// The response by another owner's outcome.
  private static func replacing(by record: CompletedRecord) -> StoredAction {
    switch replay(record) {
    case .replay(let record): .replay(record)
    case .refuse(let problem): .refuse(problem)
    default: invariantBroken("a completed record is replayed or refused")
    }
  }

  /// Decides on the store's reply to the mark of a run that has timed out; `nil` if the client is refused for that, and
  /// a late response is awaited. If another delivery has completed the record, that one's outcome counts.
  public mutating func marked(_ outcome: OwnerOutcome) -> StoredAction? {
    guard case .listening = state else {
      invariantBroken("marked outside of listening")
    }
    guard case .lost(.completed(let record)) = outcome else { return nil }
    state = .ended
    return Self.replacing(by: record)
  }

  /// Decides on a mark to which the store gave no reply: the lease lapses, which leaves the outcome unknown as well,
  /// and the client gets the backend's response, or the refusal for its loss.
  public mutating func markFailed() -> StoredAction {
    guard case .settling = state else {
      invariantBroken("markFailed outside of settling")
    }
    state = .ended
    return .respond
  }

  /// Decides on a completion that failed.
  public mutating func storingFailed() -> StoredAction {
    guard case .settling = state else {
      invariantBroken("storingFailed outside of settling")
    }
    state = .ended
    return switch route.policy.onUnknown {
    case .hold: .respondAndKeepStoring
    // A later delivery may run again, with another response.
    case .retry, .reconcile:
      .refuseAndKeepStoring(.responseLost(.broken, retryAfter: route.policy.retryAfterLoss(age: 0)))
    }
  }
}
