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
