import Wire

/// The latest state of a record that this process has seen, which protects the record while the store is unavailable.
///
/// It is kept only for routes with `on_store_failure: open`. In case of doubt, another delivery counts as a duplicate:
/// an unnecessary refusal lasts no longer than the outage, while a second execution cannot be undone. `until` is the
/// end of the record by this process's clock, so that nothing is refused for ever.
public struct KnownRecord: Sendable, Equatable {
  public enum State: Sendable, Equatable {
    /// A delivery of this process owns the record and is in progress.
    case owned
    /// A delivery of this process runs without a record. `releasedUntil` is the end of the released record with which
    /// it began; `nil` if there was none.
    case unprotected(releasedUntil: BootInstant?)
    /// A delivery of this process ran without a record, and its response was lost. The store does not know of it, so a
    /// claim that it grants is used only to mark the record unknown.
    case lost(until: BootInstant)
    /// The record is in flight elsewhere, completed, unknown or expired. Another delivery is a duplicate.
    case taken(until: BootInstant)
    /// The record is free to claim with the same payload.
    case released(until: BootInstant)

    /// Whether this process has run the record and the store has no trace of the run.
    var isUnknownToStore: Bool {
      switch self {
      case .unprotected, .lost: true
      case .owned, .taken, .released: false
      }
    }
  }

  public var state: State
  /// The token of the delivery of this process that last ran the record; `nil` if none has.
  public var owner: OwnerToken?
  /// The record's fingerprint; `nil` if the store compared fingerprints without returning the record's.
  public var fingerprint: Fingerprint?

  public init(_ state: State, owner: OwnerToken? = nil, fingerprint: Fingerprint?) {
    self.state = state
    self.owner = owner
    self.fingerprint = fingerprint
  }

  /// Whether a delivery of this process is running the record.
  public var isRunningHere: Bool {
    switch state {
    case .owned, .unprotected: true
    case .lost, .taken, .released: false
    }
  }

  /// Whether the record is free to claim.
  fileprivate var isFree: Bool {
    if case .released = state { true } else { false }
  }

  /// Whether the record's time is over.
  public func hasExpired(now: BootInstant) -> Bool {
    switch state {
    case .owned, .unprotected: false
    case .lost(let until), .taken(let until), .released(let until): until <= now
    }
  }
}

extension KnownRecord {
  /// The reason why a delivery must not run without the store.
  public enum Conflict: Sendable, Equatable { case duplicate, otherPayload }

  public func conflict(with newcomer: Fingerprint) -> Conflict? {
    guard case .released = state else { return isOtherPayload(newcomer) ? .otherPayload : .duplicate }
    return switch isSamePayload(newcomer) {
    case true: nil
    case false: .otherPayload
    // The record's fingerprint is not known, and the store compared it; or the two cannot be compared here.
    case nil: fingerprint == nil ? nil : .duplicate
    }
  }

  private func isOtherPayload(_ newcomer: Fingerprint) -> Bool { isSamePayload(newcomer) == false }

  /// Compares the payloads; `nil` if their fingerprints have different recipes, or the record's is not known. The
  /// digests of members, which differ from payload to payload, make no other recipe.
  private func isSamePayload(_ newcomer: Fingerprint) -> Bool? {
    guard let fingerprint, fingerprint.recipe.plain == newcomer.recipe.plain else { return nil }
    return fingerprint.digest == newcomer.digest
  }
}

extension KnownRecord {
  /// The known record after the store's reply to a claim; `nil` if the store has no record.
  public static func after(
    _ outcome: ClaimOutcome, to request: ClaimRequest, from before: KnownRecord?, now: BootInstant
  ) -> KnownRecord? {
    switch outcome {
    case .granted(let claim):
      return KnownRecord(.owned, owner: claim.owner, fingerprint: claim.fingerprint)
    case .taken(let standing):
      // The end of the owner in this process will be more precise than this reply.
      if let before, before.isRunningHere { return before }
      if let before, case .lost = before.state, !standing.isEnd { return before }
      let times = (unknownRetention: request.unknownRetention, remember: request.remember)
      return State(standing, times.unknownRetention, times.remember, now: now).map {
        KnownRecord($0, owner: before?.owner, fingerprint: request.fingerprint)
      }
    case .mismatch, .otherRecipe:
      return before ?? unreported(to: request, now: now)
    }
  }

  /// The known record of which the store has reported no state. Another delivery may just have begun to run it.
  static func unreported(to request: ClaimRequest, now: BootInstant) -> KnownRecord {
    let end = now + request.lease + request.unknownRetention + request.remember
    return KnownRecord(.taken(until: end), fingerprint: nil)
  }

  /// The known record of a delivery that begins to run without the store.
  static func unprotected(_ request: ClaimRequest, from before: KnownRecord?) -> KnownRecord {
    invariant(before?.isFree ?? true, "a request runs without the store beside a record that is not free")
    var releasedUntil: BootInstant?
    if case .released(let until) = before?.state { releasedUntil = until }
    return KnownRecord(
      .unprotected(releasedUntil: releasedUntil), owner: request.owner, fingerprint: request.fingerprint)
  }
}

extension KnownRecord {
  /// The end of a record by an owner in this process.
  public enum OwnEnd: Sendable, Equatable {
    /// The record is completed, and remembered for this time.
    case completed(Milliseconds)
    case unknown
    case released
    case deleted
  }

  /// The known record after its owner's end, if that owner is still the last that ran it here; `nil` if nothing is
  /// known.
  ///
  /// - Parameter outcome: The store's reply; `nil` if there was none, and the end is sent again until there is one.
  public func ended(
    by claim: Claim, as end: OwnEnd, _ outcome: OwnerOutcome?, now: BootInstant
  ) -> KnownRecord? {
    guard owner == claim.owner else { return self }
    var state: State?
    switch outcome {
    case .lost(let found): state = State(found, claim.unknownRetention, claim.remember, now: now)
    case .replaced: state = .taken(until: now + claim.unknownRetention + claim.remember)
    case .done, nil:
      switch end {
      case .completed(let span): state = .taken(until: now + span)
      case .unknown: state = .taken(until: now + claim.unknownRetention + claim.remember)
      case .released: state = .released(until: now + claim.remember)
      case .deleted: state = nil
      }
    }
    return state.map { KnownRecord($0, owner: owner, fingerprint: fingerprint) }
  }

  /// The known record after a run without the store; `nil` if nothing is known.
  ///
  /// - Parameter isLost: Whether it is unknown what the backend did.
  public func ended(unprotected request: ClaimRequest, isLost: Bool, now: BootInstant) -> KnownRecord? {
    guard owner == request.owner, case .unprotected(let releasedUntil) = state else { return self }
    var record = self
    if isLost {
      record.state = .lost(until: now + request.unknownRetention + request.remember)
      return record
    }
    guard let releasedUntil else { return nil }
    record.state = .released(until: releasedUntil)
    return record
  }

  /// The known record after the store has marked a lost run unknown. From now on the store's replies count.
  public func markedUnknown() -> KnownRecord {
    guard case .lost(let until) = state else { return self }
    return KnownRecord(.taken(until: until), owner: owner, fingerprint: fingerprint)
  }
}

extension Standing {
  /// Whether the record has ended for good. Any other may become free: its owner may release it, or it is this
  /// process's own unused claim, which lapsed and is still to be given back.
  fileprivate var isEnd: Bool {
    switch self {
    case .completed, .expired: true
    case .absent, .inFlight, .unknown, .released: false
    }
  }
}

extension KnownRecord.State {
  /// Converts a standing that the store reported; `nil` if the store has no record.
  init?(_ standing: Standing, _ unknownRetention: Milliseconds, _ remember: Milliseconds, now: BootInstant) {
    switch standing {
    case .absent: return nil
    case .inFlight(let leaseLeft, _): self = .taken(until: now + leaseLeft + unknownRetention + remember)
    case .unknown(let age, _): self = .taken(until: now + max(unknownRetention - age, 0) + remember)
    case .released: self = .released(until: now + remember)
    // These are upper bounds, since the store does not report when the record ends.
    case .completed(let record): self = .taken(until: now + record.remaining + remember)
    case .expired: self = .taken(until: now + remember)
    }
  }
}
