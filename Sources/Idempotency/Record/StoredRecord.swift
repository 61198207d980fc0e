/// What a store keeps of one record.
public struct StoredRecord: Sendable, Equatable {
  public enum State: Sendable, Equatable {
    /// An owner holds it; once the lease has lapsed its outcome is unknown since then.
    case inFlight(leaseUntil: StoreInstant)
    /// Possibly run, and the answer is lost since that moment.
    case unknown(since: StoreInstant)
    /// Ended without a final outcome, free to claim, and remembered so long.
    case released(until: StoreInstant)
    /// Ended with a final outcome.
    case completed(StoredCompletion)
    /// Was completed; the answer is gone, and that there was one is remembered so long.
    case tombstone(until: StoreInstant)
  }

  public var state: State
  public var fingerprint: Fingerprint
  /// The last owner, also after it gave the record back.
  public var owner: OwnerToken
  public var attempt: Int
  public var firstSeen: StoreInstant
  /// See `Claim`.
  public var followsUnknown: Bool
  public var onlyRejectedSoFar: Bool
  public var unknownRetention: Milliseconds
  public var remember: Milliseconds
  /// The end of the fence of a record that was forgotten before this one; it outlives this one's owners, and stands in
  /// its place where this one ends sooner.
  public var fencedUntil: StoreInstant?

  public init(
    state: State, fingerprint: Fingerprint, owner: OwnerToken, attempt: Int, firstSeen: StoreInstant,
    followsUnknown: Bool, onlyRejectedSoFar: Bool, unknownRetention: Milliseconds, remember: Milliseconds,
    fencedUntil: StoreInstant? = nil
  ) {
    self.state = state
    self.fingerprint = fingerprint
    self.owner = owner
    self.attempt = attempt
    self.firstSeen = firstSeen
    self.followsUnknown = followsUnknown
    self.onlyRejectedSoFar = onlyRejectedSoFar
    self.unknownRetention = unknownRetention
    self.remember = remember
    self.fencedUntil = fencedUntil
  }
}

/// A final outcome as it is stored, with its times.
public struct StoredCompletion: Sendable, Equatable {
  public var outcome: Outcome
  public var recordedAt: StoreInstant
  /// From here on only the tombstone counts.
  public var expiresAt: StoreInstant
  /// From here on there is no record; not before `expiresAt`.
  public var rememberedUntil: StoreInstant

  public init(
    outcome: Outcome, recordedAt: StoreInstant, expiresAt: StoreInstant, rememberedUntil: StoreInstant
  ) {
    self.outcome = outcome
    self.recordedAt = recordedAt
    self.expiresAt = expiresAt
    self.rememberedUntil = rememberedUntil
  }

  /// The completion that an owner or operator asks for, recorded now.
  init(_ completion: Completion, now: StoreInstant) {
    outcome = completion.outcome
    recordedAt = now
    expiresAt = now + completion.retention
    rememberedUntil = now + max(completion.retention, completion.remember)
  }
}

extension StoredRecord {
  /// When the record is as good as absent.
  public var keptUntil: StoreInstant {
    switch state {
    case .inFlight(let loss), .unknown(let loss): loss + unknownRetention + remember
    case .released(let until), .tombstone(let until): until
    case .completed(let completion): completion.rememberedUntil
    }
  }

  /// Where the record stands at a moment of the store's clock.
  public func standing(now: StoreInstant) -> Standing {
    guard now < keptUntil else { return .absent }
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
