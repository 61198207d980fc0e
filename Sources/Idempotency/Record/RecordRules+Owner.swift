extension RecordRules {
  /// The entry that an owner finds under the id of its claim.
  private enum Found {
    /// No record: the store has lost it, or it was deleted.
    case nothing
    /// The record with the owner's own token.
    case own(StoredRecord)
    /// A record of another owner, or the fence of a forgotten one.
    case lost(OwnerOutcome)
  }

  private static func found(_ entry: StoredEntry?, _ claim: Claim, now: StoreInstant) -> Found {
    switch present(entry, now: now) {
    case nil: .nothing
    case .record(let record) where record.owner == claim.owner: .own(record)
    case .record(let record) where record.fingerprint != claim.fingerprint: .lost(.replaced)
    case .record(let record): .lost(.lost(record.standing(now: now)))
    case .fence: .lost(.lost(.absent))
    }
  }

  /// Renews the lease, which counts from now.
  public static func renew(_ entry: StoredEntry?, _ claim: Claim, now: StoreInstant) -> RecordStep<
    OwnerOutcome
  > {
    let leased = StoredRecord.State.inFlight(leaseUntil: now + claim.lease)
    switch found(entry, claim, now: now) {
    case .nothing: return RecordStep(.put(.record(anew(claim, leased))), .done)
    case .lost(let outcome): return RecordStep(.none, outcome)
    case .own(var record):
      guard case .inFlight = record.state else { return RecordStep(.none, .done) }
      record.state = leased
      return RecordStep(.put(.record(record)), .done)
    }
  }

  /// Completes the record with its final outcome, and returns it as stored.
  public static func complete(
    _ entry: StoredEntry?, _ claim: Claim, with completion: Completion, now: StoreInstant
  ) -> RecordStep<CompletionReply> {
    let step = completed(entry, claim, with: completion, now: now)
    let after = if case .put(let entry) = step.change { entry } else { entry }
    guard step.outcome == .done, case .completed(let record) = find(after, now: now) else {
      return RecordStep(step.change, CompletionReply(outcome: step.outcome, record: nil))
    }
    return RecordStep(step.change, CompletionReply(outcome: .done, record: record))
  }

  private static func completed(
    _ entry: StoredEntry?, _ claim: Claim, with completion: Completion, now: StoreInstant
  ) -> RecordStep<OwnerOutcome> {
    let completed = StoredRecord.State.completed(StoredCompletion(completion, now: now))
    switch found(entry, claim, now: now) {
    case .nothing: return RecordStep(.put(.record(anew(claim, completed))), .done)
    case .lost(let outcome): return RecordStep(.none, outcome)
    case .own(var record):
      switch record.state {
      case .inFlight, .unknown:
        record.state = completed
        record.attribution = claim.attribution
        return RecordStep(.put(.record(record)), .done)
      case .completed, .tombstone: return RecordStep(.none, .done)
      case .released: return RecordStep(.none, .lost(record.standing(now: now)))
      }
    }
  }

  /// Releases the record. A fence that it carries stays.
  public static func release(
    _ entry: StoredEntry?, _ claim: Claim, _ release: Release, now: StoreInstant
  ) -> RecordStep<OwnerOutcome> {
    if case .fence(_, _, claim.owner) = present(entry, now: now) { return RecordStep(.none, .done) }
    switch found(entry, claim, now: now) {
    case .nothing: return RecordStep(.none, .done)
    case .lost(let outcome): return RecordStep(.none, outcome)
    case .own(let record):
      switch record.state {
      case .inFlight, .unknown:
        switch release {
        case .deleted: return RecordStep(deleted(record, now: now), .done)
        case .remembered: return RecordStep(.put(.record(released(record, now: now))), .done)
        case .uncounted:
          var record = released(record, now: now)
          record.uncountedAttempts += 1
          return RecordStep(.put(.record(record)), .done)
        }
      case .released: return RecordStep(.none, .done)
      case .completed, .tombstone: return RecordStep(.none, .lost(record.standing(now: now)))
      }
    }
  }

  /// Marks the record unknown, because its response is lost. If the lease had lapsed, the loss dates from that moment,
  /// not from now.
  public static func markUnknown(
    _ entry: StoredEntry?, _ claim: Claim, because cause: LossCause? = nil, now: StoreInstant
  ) -> RecordStep<OwnerOutcome> {
    switch found(entry, claim, now: now) {
    case .nothing:
      var record = anew(claim, .unknown(since: now))
      record.attribution = record.attribution?.lost(because: cause)
      return RecordStep(.put(.record(record)), .done)
    case .lost(let outcome): return RecordStep(.none, outcome)
    case .own(var record):
      switch record.state {
      case .inFlight(let leaseUntil):
        record.state = .unknown(since: min(now, leaseUntil))
        record.attribution = claim.attribution?.lost(because: cause)
        return RecordStep(.put(.record(record)), .done)
      case .unknown, .completed, .tombstone: return RecordStep(.none, .done)
      case .released: return RecordStep(.none, .lost(record.standing(now: now)))
      }
    }
  }

  /// The record from its owner's claim, for a store that has lost it.
  private static func anew(_ claim: Claim, _ state: StoredRecord.State) -> StoredRecord {
    StoredRecord(
      state: state, fingerprint: claim.fingerprint, owner: claim.owner, attempt: claim.attempt,
      firstSeen: claim.firstSeen, followsUnknown: claim.followsUnknown,
      onlyRejectedSoFar: claim.onlyRejectedSoFar, uncountedAttempts: claim.uncountedAttempts,
      unknownRetention: claim.unknownRetention, remember: claim.remember, fencedUntil: claim.fence?.until,
      attribution: claim.attribution)
  }

  /// The change that deletes a record, except for a fence that it carries.
  private static func deleted(_ record: StoredRecord, now: StoreInstant) -> RecordChange {
    guard let until = record.fencedUntil, now < until else { return .delete }
    return .put(.fence(attempt: record.attempt, until: until, givenBackBy: record.owner))
  }

  /// The record after its release. From now on, its attempts count as having met more than rejections.
  static func released(_ record: StoredRecord, now: StoreInstant) -> StoredRecord {
    var record = record
    record.state = .released(until: now + record.remember)
    record.onlyRejectedSoFar = false
    return record
  }
}

/// The mark of a forgotten record, which later owners of the record preserve.
public struct Fence: Sendable, Equatable {
  /// The end of the fence. Until then, no owner from before it may make the record anew.
  public var until: StoreInstant
  /// The time from the claim to that end, for a store whose entries expire by themselves.
  public var left: Milliseconds

  public init(until: StoreInstant, left: Milliseconds) {
    self.until = until
    self.left = left
  }

  /// Creates a fence; `nil` if its time is over.
  public init?(until: StoreInstant?, now: StoreInstant) {
    guard let until, now < until else { return nil }
    self.init(until: until, left: until - now)
  }

  /// The maximum time for which an owner tries to store the result of its exchange.
  public static let storing = Milliseconds.seconds(24 * 3600)

  /// The span of a fence that outlasts every owner: its exchange and `storing`, then the exchange once more and a day,
  /// in reserve for limits that a reload has shortened and for commands that arrive late.
  ///
  /// - Parameter exchange: The maximum time of an exchange, from its claim on.
  public static func span(outlasting exchange: Milliseconds) -> Milliseconds {
    storing + exchange + exchange + .seconds(24 * 3600)
  }
}

/// The pace at which an owner repeats a write that the store did not take. A claim that would take its record over
/// waits for the last try.
public enum WritePace {
  /// The longest pause between two tries.
  public static let maxPause: Milliseconds = 2000
  /// The time for delays of the process and of the network.
  private static let slack: Milliseconds = 500
  /// The calls of the store in one try: a large response is written to Redis before its record.
  private static let calls: Int64 = 2

  /// The time after the store's return by which every owner has repeated its write.
  ///
  /// - Parameter callTime: The longest time of one call of the store.
  public static func span(callTime: Milliseconds) -> Milliseconds {
    maxPause + slack + Milliseconds(callTime.count * calls)
  }
}
