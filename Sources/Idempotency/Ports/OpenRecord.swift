/// An entry in an operator's list of records that are in flight or of unknown outcome.
public struct OpenRecord: Sendable, Equatable {
  public var id: RecordID
  /// The record's state, `inFlight` or `unknown`.
  public var standing: Standing
  /// The time at which the first delivery arrived.
  public var firstSeen: StoreInstant
  /// The time since `firstSeen`, by the store's clock.
  public var age: Milliseconds

  public init(id: RecordID, standing: Standing, firstSeen: StoreInstant, age: Milliseconds) {
    self.id = id
    self.standing = standing
    self.firstSeen = firstSeen
    self.age = age
  }

  /// Creates an entry; `nil` for a record in another state.
  public init?(id: RecordID, standing: Standing, firstSeen: StoreInstant, now: StoreInstant) {
    switch standing {
    case .inFlight, .unknown: break
    default: return nil
    }
    self.init(id: id, standing: standing, firstSeen: firstSeen, age: max(now - firstSeen, 0))
  }
}

/// A part of the list of open records, with those that this version cannot read. A record that existed throughout the
/// listing is in at least one part, and may be in two.
public struct OpenRecords: Sendable, Equatable {
  /// The open records. The array may be empty even if more parts follow.
  public var records: [OpenRecord]
  /// Records that cannot be read. Their keys are refused until an operator forgets them.
  public var unreadable: [RecordID]
  /// The cursor for the next part; `nil` at the end.
  public var next: String?

  public init(records: [OpenRecord], unreadable: [RecordID] = [], next: String?) {
    self.records = records
    self.unreadable = unreadable
    self.next = next
  }
}
