/// What a store keeps under one id.
public enum StoredEntry: Sendable, Equatable {
  case record(StoredRecord)
  /// What `forget` leaves for a while: no owner from before makes the record anew, and attempts go on
  /// counting.
  ///
  /// - Parameter givenBackBy: the owner that deleted its record over this fence, so that its repeated release succeeds.
  case fence(attempt: Int, until: StoreInstant, givenBackBy: OwnerToken? = nil)

  /// When the entry is as good as absent.
  public var keptUntil: StoreInstant {
    switch self {
    case .record(let record): max(record.keptUntil, record.fencedUntil ?? record.keptUntil)
    case .fence(_, let until, _): until
    }
  }

  /// Where the record stands at a moment of the store's clock.
  public func standing(now: StoreInstant) -> Standing {
    switch self {
    case .record(let record): record.standing(now: now)
    case .fence: .absent
    }
  }
}

/// What a store has to write.
public enum RecordChange: Sendable, Equatable {
  case none
  case put(StoredEntry)
  case delete
}

/// What one command does to an entry, and what its sender is told.
public struct RecordStep<Outcome: Sendable>: Sendable {
  public var change: RecordChange
  public var outcome: Outcome

  public init(_ change: RecordChange, _ outcome: Outcome) {
    self.change = change
    self.outcome = outcome
  }
}

extension RecordStep: Equatable where Outcome: Equatable {}
