import Wire

/// The effect of each command on a record: the life of a record (contract, section 2) as functions of the present
/// entry, the command and the store's time. Every store implements these rules, in whatever language.
///
/// An entry whose time is over may still be passed in; it counts as absent. The time from which a lease or a loss counts
/// is not ahead of the store's: a store whose clock was set back moves it to its present time first
/// (`RedisScript.takeBack`, `ClockHistory`).
///
/// Tests/Model/claim.pml contains the same rules as a model (`runClaim`, `runRenewal`, `runMark`, `runCompletion`,
/// `runRelease`), which is searched through all orders of commands, lost replies and time. A change to a rule must
/// change both.
public enum RecordRules {
  /// Claims the record for a new owner.
  ///
  /// A store that may receive delayed copies of a command refuses, as late, the claim of an owner that has released the
  /// record or whose record was forgotten: see `RedisScript.claimSource`.
  ///
  /// - Parameter base: The number above which the attempts of the store's present generation are.
  public static func claim(
    _ entry: StoredEntry?, _ request: ClaimRequest, now: StoreInstant, requestedAt: BootInstant,
    base: Int = 0
  ) -> RecordStep<ClaimOutcome> {
    switch present(entry, now: now) {
    case nil:
      grant(fresh(request, attempt: base + 1, now: now), request, now: now, requestedAt: requestedAt)
    case .fence(let attempt, let until, _):
      grant(
        fresh(request, attempt: following(attempt, base), now: now, fencedUntil: until), request, now: now,
        requestedAt: requestedAt)
    case .record(let record):
      claim(record, request, now: now, requestedAt: requestedAt, base)
    }
  }

  private static func claim(
    _ record: StoredRecord, _ request: ClaimRequest, now: StoreInstant, requestedAt: BootInstant, _ base: Int
  ) -> RecordStep<ClaimOutcome> {
    if record.owner == request.owner, case .inFlight = record.state {
      var again = record
      again.state = .inFlight(leaseUntil: now + request.lease)
      again.attribution = request.attribution
      return grant(again, request, now: now, requestedAt: requestedAt)
    }
    guard record.fingerprint.recipe == request.fingerprint.recipe else {
      return RecordStep(.none, .otherRecipe(record.fingerprint.recipe))
    }
    guard record.fingerprint.digest == request.fingerprint.digest else { return RecordStep(.none, .mismatch) }
    let standing = record.standing(now: now)
    switch standing {
    case .released:
      return grant(next(record, request, now: now, base), request, now: now, requestedAt: requestedAt)
    case .unknown(let age, _):
      guard let minAge = request.takeOver.minAge(at: requestedAt), age >= minAge else {
        return RecordStep(.none, .taken(standing))
      }
      var record = next(record, request, now: now, base)
      record.followsUnknown = true
      record.onlyRejectedSoFar = false
      return grant(record, request, now: now, requestedAt: requestedAt)
    case .absent, .inFlight, .completed, .expired:
      return RecordStep(.none, .taken(standing))
    }
  }

  private static func fresh(
    _ request: ClaimRequest, attempt: Int, now: StoreInstant, fencedUntil: StoreInstant? = nil
  ) -> StoredRecord {
    StoredRecord(
      state: .inFlight(leaseUntil: now + request.lease), fingerprint: request.fingerprint,
      owner: request.owner, attempt: attempt, firstSeen: now, followsUnknown: false, onlyRejectedSoFar: true,
      unknownRetention: request.unknownRetention, remember: request.remember, fencedUntil: fencedUntil,
      attribution: request.attribution)
  }

  /// The record with its next owner.
  private static func next(
    _ record: StoredRecord, _ request: ClaimRequest, now: StoreInstant, _ base: Int
  ) -> StoredRecord {
    var record = record
    record.state = .inFlight(leaseUntil: now + request.lease)
    record.owner = request.owner
    record.attempt = following(record.attempt, base)
    record.unknownRetention = request.unknownRetention
    record.remember = request.remember
    record.attribution = request.attribution
    return record
  }

  /// The number of the attempt after another one, which may be of an earlier generation. A damaged record may have any
  /// number.
  private static func following(_ attempt: Int, _ base: Int) -> Int {
    let attempt = min(max(attempt, 1), .max / 2)
    let next = attempt > base ? attempt + 1 : base + (attempt - 1) % Claim.attemptsPerGeneration + 2
    invariant(next > base, "the number of an attempt falls behind its store's generation")
    invariant(next > 1, "an attempt that follows another one counts as the first")
    return next
  }

  private static func grant(
    _ record: StoredRecord, _ request: ClaimRequest, now: StoreInstant, requestedAt: BootInstant
  ) -> RecordStep<ClaimOutcome> {
    invariant(record.owner == request.owner, "a record is granted that has another owner")
    invariant(record.isHeld, "a record is granted that is not in flight")
    let claim = Claim(
      id: request.id, owner: record.owner, fingerprint: record.fingerprint, attempt: record.attempt,
      firstSeen: record.firstSeen, followsUnknown: record.followsUnknown,
      onlyRejectedSoFar: record.onlyRejectedSoFar, uncountedAttempts: record.uncountedAttempts,
      lease: request.lease, unknownRetention: record.unknownRetention, remember: record.remember,
      fence: Fence(until: record.fencedUntil, now: now), requestedAt: requestedAt, key: request.key,
      attribution: record.attribution, turn: request.turn)
    return RecordStep(.put(.record(record)), .granted(claim))
  }

  /// The entry if its time is not over; `nil` otherwise. For a record that ends before the fence that it carries, the
  /// fence.
  static func present(_ entry: StoredEntry?, now: StoreInstant) -> StoredEntry? {
    guard let entry, now < entry.endsAt else { return nil }
    guard case .record(let record) = entry, record.endsAt <= now, let until = record.fencedUntil else {
      return entry
    }
    return .fence(attempt: record.attempt, until: until)
  }
}

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
