import Wire

/// The stored form of one record.
public struct StoredRecord: Sendable, Equatable {
  public enum State: Sendable, Equatable {
    /// An owner holds the record. Once the lease has lapsed, the outcome counts as unknown since that moment.
    case inFlight(leaseUntil: StoreInstant)
    /// The request may have run, and its response is lost since that moment.
    case unknown(since: StoreInstant)
    /// The record ended without a final outcome, is free to claim, and is remembered until that moment.
    case released(until: StoreInstant)
    /// The record ended with a final outcome.
    case completed(StoredCompletion)
    /// The record was completed. Its response is gone, and its completion is remembered until that moment.
    case tombstone(until: StoreInstant)
  }

  public var state: State
  public var fingerprint: Fingerprint
  /// The last owner, even after it released the record.
  public var owner: OwnerToken
  public var attempt: Int
  public var firstSeen: StoreInstant
  /// Documented at `Claim`, like the four properties that follow.
  public var followsUnknown: Bool
  public var onlyRejectedSoFar: Bool
  public var uncountedAttempts: Int
  public var unknownRetention: Milliseconds
  public var remember: Milliseconds
  /// The end of the fence of a record that was forgotten before this one. The fence outlives this record's owners, and
  /// takes the record's place if the record ends first.
  public var fencedUntil: StoreInstant?
  /// The origin of the latest attempt; `nil` if it is not known.
  public var attribution: Attribution?

  public init(
    state: State, fingerprint: Fingerprint, owner: OwnerToken, attempt: Int, firstSeen: StoreInstant,
    followsUnknown: Bool, onlyRejectedSoFar: Bool, uncountedAttempts: Int = 0, unknownRetention: Milliseconds,
    remember: Milliseconds,
    fencedUntil: StoreInstant? = nil, attribution: Attribution? = nil
  ) {
    self.state = state
    self.fingerprint = fingerprint
    self.owner = owner
    self.attempt = attempt
    self.firstSeen = firstSeen
    self.followsUnknown = followsUnknown
    self.onlyRejectedSoFar = onlyRejectedSoFar
    self.uncountedAttempts = uncountedAttempts
    self.unknownRetention = unknownRetention
    self.remember = remember
    self.fencedUntil = fencedUntil
    self.attribution = attribution
  }
}

/// The stored form of a final outcome, with its times.
public struct StoredCompletion: Sendable, Equatable {
  public var outcome: Outcome
  public var recordedAt: StoreInstant
  /// The moment from which only the tombstone counts.
  public var expiresAt: StoreInstant
  /// The moment from which there is no record; not before `expiresAt`.
  public var rememberedUntil: StoreInstant

  public init(
    outcome: Outcome, recordedAt: StoreInstant, expiresAt: StoreInstant, rememberedUntil: StoreInstant
  ) {
    self.outcome = outcome
    self.recordedAt = recordedAt
    self.expiresAt = expiresAt
    self.rememberedUntil = rememberedUntil
  }

  /// Creates the stored form of an owner's or operator's completion, recorded now.
  init(_ completion: Completion, now: StoreInstant) {
    outcome = completion.outcome
    recordedAt = now
    expiresAt = now + completion.retention
    rememberedUntil = now + completion.lifetime
    invariant(expiresAt <= rememberedUntil, "an outcome is kept for longer than its record")
  }
}

extension StoredRecord {
  /// The moment from which the record counts as absent.
  public var endsAt: StoreInstant {
    switch state {
    case .inFlight(let loss), .unknown(let loss): loss + unknownRetention + remember
    case .released(let until), .tombstone(let until): until
    case .completed(let completion): completion.rememberedUntil
    }
  }

  /// Whether an owner holds the record, even if its lease has lapsed.
  public var isHeld: Bool {
    if case .inFlight = state { true } else { false }
  }

  /// The state of the record at a moment of the store's clock.
  public func standing(now: StoreInstant) -> Standing {
    guard now < endsAt else { return .absent }
    switch state {
    case .inFlight(let leaseUntil) where now < leaseUntil:
      return .inFlight(leaseLeft: leaseUntil - now, attempt: attempt)
    case .inFlight(let loss), .unknown(let loss):
      let age = max(now - loss, 0)
      return age < unknownRetention ? .unknown(age: age, attempt: attempt) : .expired(attempt: attempt)
    case .released:
      return .released(attempt: attempt)
    case .completed(let completion) where now < completion.expiresAt:
      return .completed(
        CompletedRecord(
          outcome: completion.outcome, recordedAt: completion.recordedAt, expiresAt: completion.expiresAt,
          remaining: completion.expiresAt - now, attempt: attempt))
    case .completed, .tombstone:
      return .expired(attempt: attempt)
    }
  }
}

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

extension Standing {
  /// The same without what a response consists of but its status.
  public var stateAlone: Standing {
    guard case .completed(let record) = self else { return self }
    return .completed(record.with(.statusOnly(status: record.outcome.status, location: nil)))
  }
}

/// The contents of a store under one id.
public enum StoredEntry: Sendable, Equatable {
  case record(StoredRecord)
  /// The mark that `forget` leaves for a while: no earlier owner can make the record anew, and attempts continue to
  /// count.
  ///
  /// - Parameter givenBackBy: The owner that deleted its record over this fence, so that its repeated release succeeds.
  case fence(attempt: Int, until: StoreInstant, givenBackBy: OwnerToken? = nil)

  /// The moment from which the entry counts as absent.
  public var endsAt: StoreInstant {
    switch self {
    case .record(let record): max(record.endsAt, record.fencedUntil ?? record.endsAt)
    case .fence(_, let until, _): until
    }
  }

  /// The state of the record at a moment of the store's clock.
  public func standing(now: StoreInstant) -> Standing {
    switch self {
    case .record(let record): record.standing(now: now)
    case .fence: .absent
    }
  }
}

/// The write that a command requires.
public enum RecordChange: Sendable, Equatable {
  case none
  case put(StoredEntry)
  case delete
}

/// The effect of one command on an entry, and the reply to its sender.
public struct RecordStep<Outcome: Sendable>: Sendable {
  public var change: RecordChange
  public var outcome: Outcome

  public init(_ change: RecordChange, _ outcome: Outcome) {
    self.change = change
    self.outcome = outcome
  }
}

extension RecordStep: Equatable where Outcome: Equatable {}
