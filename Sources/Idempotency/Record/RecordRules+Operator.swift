extension RecordRules {
  /// The present state of the record.
  public static func find(_ entry: StoredEntry?, now: StoreInstant) -> Standing {
    entry?.standing(now: now) ?? .absent
  }

  /// Removes the record and leaves a fence, which every later owner preserves. If a fence exists already, the later of
  /// the two ends counts.
  public static func forget(_ entry: StoredEntry?, fence: Milliseconds, now: StoreInstant) -> RecordStep<
    Bool
  > {
    switch present(entry, now: now) {
    case nil: RecordStep(.none, false)
    case .record(let record):
      RecordStep(
        .put(.fence(attempt: record.attempt, until: max(now + fence, record.fencedUntil ?? now))), true)
    case .fence(let attempt, let until, _):
      RecordStep(.put(.fence(attempt: attempt, until: max(until, now + fence))), false)
    }
  }

  /// Removes a record that cannot be read, of which only the attempt is known, and leaves a fence.
  public static func forgetUnreadable(
    attempt: Int, fence: Milliseconds, now: StoreInstant
  ) -> RecordStep<Bool> {
    RecordStep(.put(.fence(attempt: attempt, until: now + fence)), true)
  }

  /// Ends an unknown record by an operator's decision.
  /// - Parameters:
  ///   - successor: A new token of an operator, so that the owner which lost the response no longer holds the record.
  ///   - amending: Whether to correct an earlier decision of an operator, if nobody has claimed the record since.
  ///   - attempt: The attempt that the decision is about; `nil` for the last one. Any other leaves the record as it is.
  public static func resolve(
    _ entry: StoredEntry?, as resolution: Resolution, amending: Bool = false, attempt: Int? = nil,
    successor: OwnerToken, now: StoreInstant
  ) -> RecordStep<OwnerOutcome> {
    let standing = find(entry, now: now)
    guard case .record(var record) = entry, isResolvable(standing, record, amending: amending),
      attempt == nil || attempt == record.attempt
    else { return RecordStep(.none, .lost(standing)) }
    record.owner = successor
    switch resolution {
    case .applied(let completion): record.state = .completed(StoredCompletion(completion, now: now))
    case .notApplied: record = released(record, now: now)
    }
    return RecordStep(.put(.record(record)), .done)
  }

  private static func isResolvable(
    _ standing: Standing, _ record: StoredRecord, amending: Bool
  ) -> Bool {
    switch standing {
    case .unknown: true
    case .completed, .released: amending && record.owner.isOfOperator
    case .absent, .inFlight, .expired: false
    }
  }
}
