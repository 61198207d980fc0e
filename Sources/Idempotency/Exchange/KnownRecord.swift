/// The last state of one record that this process has met: the protection that is left while the store is away.
///
/// Kept for routes with `on_store_failure: open` only. In doubt it says *duplicate*: a refusal that was not necessary
/// ends with the outage, a second run does not. `until` is the record's own end by this process's clock, so that nothing
/// is refused for ever.
public struct KnownRecord: Sendable, Equatable {
  public enum Standing: Sendable, Equatable {
    /// A delivery of this process owns the record and is at work.
    case owned
    /// A delivery of this process runs without a record. `releasedUntil`: the end of the released record that it began
    /// on, if there was one.
    case unprotected(releasedUntil: BootInstant?)
    /// In flight elsewhere, completed, unknown or expired: another delivery is a duplicate.
    case taken(until: BootInstant)
    /// Free to claim with the same payload.
    case released(until: BootInstant)
  }

  public var standing: Standing
  /// The token of the delivery of this process that last ran the record; `nil` where none has.
  public var owner: OwnerToken?
  /// `nil` where the store compared it and did not report it.
  public var fingerprint: Fingerprint?

  public init(_ standing: Standing, owner: OwnerToken? = nil, fingerprint: Fingerprint?) {
    self.standing = standing
    self.owner = owner
    self.fingerprint = fingerprint
  }

  /// Whether a delivery of this process is at work on it.
  public var isAtWork: Bool {
    switch standing {
    case .owned, .unprotected: true
    case .taken, .released: false
    }
  }

  /// Whether the record's own time is over.
  public func hasExpired(now: BootInstant) -> Bool {
    switch standing {
    case .owned, .unprotected: false
    case .taken(let until), .released(let until): until <= now
    }
  }
}

extension KnownRecord {
  /// The reason for which a delivery must not run without the store.
  public enum Conflict: Sendable, Equatable { case duplicate, otherPayload }

  public func conflict(with newcomer: Fingerprint) -> Conflict? {
    guard case .released = standing else { return isOtherPayload(newcomer) ? .otherPayload : .duplicate }
    guard let fingerprint, fingerprint != newcomer else { return nil }
    // By another recipe the two cannot be compared here.
    return isOtherPayload(newcomer) ? .otherPayload : .duplicate
  }

  private func isOtherPayload(_ newcomer: Fingerprint) -> Bool {
    guard let fingerprint, fingerprint.recipe == newcomer.recipe else { return false }
    return fingerprint.digest != newcomer.digest
  }
}

extension KnownRecord {
  /// The record after the store's reply to a claim.
  public static func after(
    _ outcome: ClaimOutcome, to request: ClaimRequest, from before: KnownRecord?, now: BootInstant
  ) -> KnownRecord? {
    switch outcome {
    case .granted(let claim):
      return KnownRecord(.owned, owner: claim.owner, fingerprint: claim.fingerprint)
    case .taken(let standing):
      // The owner's own end says more.
      if let before, before.isAtWork { return before }
      let times = (unknownRetention: request.unknownRetention, remember: request.remember)
      return Standing(standing, times.unknownRetention, times.remember, now: now).map {
        KnownRecord($0, owner: before?.owner, fingerprint: request.fingerprint)
      }
    case .mismatch, .otherRecipe:
      return before ?? KnownRecord(.taken(until: now + request.remember), fingerprint: nil)
    }
  }

  /// The record of which a delivery begins to run without the store.
  static func unprotected(_ request: ClaimRequest, from before: KnownRecord?) -> KnownRecord {
    var releasedUntil: BootInstant?
    if case .released(let until) = before?.standing { releasedUntil = until }
    return KnownRecord(
      .unprotected(releasedUntil: releasedUntil), owner: request.owner, fingerprint: request.fingerprint)
  }
}

extension KnownRecord {
  /// The end that an owner of this process has given its record.
  public enum OwnEnd: Sendable, Equatable {
    /// Completed, and remembered for so long.
    case completed(Milliseconds)
    case unknown
    case released
    case deleted
  }

  /// The record after an owner's end, where the owner still is the last that ran it here; `nil`: nothing is known.
  ///
  /// - Parameter outcome: the store's reply; `nil` where it gave none, and the end is told until it does.
  public func ended(
    by claim: Claim, as end: OwnEnd, _ outcome: OwnerOutcome?, now: BootInstant
  ) -> KnownRecord? {
    guard owner == claim.owner else { return self }
    var standing: Standing?
    if case .lost(let found) = outcome {
      standing = Standing(found, claim.unknownRetention, claim.remember, now: now)
    } else {
      switch end {
      case .completed(let span): standing = .taken(until: now + span)
      case .unknown: standing = .taken(until: now + claim.unknownRetention + claim.remember)
      case .released: standing = .released(until: now + claim.remember)
      case .deleted: standing = nil
      }
    }
    return standing.map { KnownRecord($0, owner: owner, fingerprint: fingerprint) }
  }

  /// The record after a run without the store.
  ///
  /// - Parameter isLost: whether nobody knows what the backend did.
  public func ended(unprotected request: ClaimRequest, isLost: Bool, now: BootInstant) -> KnownRecord? {
    guard owner == request.owner, case .unprotected(let releasedUntil) = standing else { return self }
    var record = self
    if isLost {
      record.standing = .taken(until: now + request.unknownRetention + request.remember)
      return record
    }
    guard let releasedUntil else { return nil }
    record.standing = .released(until: releasedUntil)
    return record
  }
}

extension KnownRecord.Standing {
  /// A standing as the store reported it; `nil` where it has no record.
  init?(_ standing: Standing, _ unknownRetention: Milliseconds, _ remember: Milliseconds, now: BootInstant) {
    switch standing {
    case .absent: return nil
    case .inFlight(let leaseLeft, _): self = .taken(until: now + leaseLeft + unknownRetention + remember)
    case .unknown(let age, _): self = .taken(until: now + max(unknownRetention - age, 0) + remember)
    case .released: self = .released(until: now + remember)
    case .completed(let record):
      let tombstone = max(remember - (record.expiresAt - record.recordedAt), 0)
      self = .taken(until: now + record.remaining + tombstone)
    // It ends sooner; the store does not report when.
    case .expired: self = .taken(until: now + remember)
    }
  }
}
