/// A record in flight or of unknown outcome, as an operator sees it in a list.
public struct OpenRecord: Sendable, Equatable {
  public var id: RecordID
  /// `inFlight` or `unknown`.
  public var standing: Standing
  /// When its first delivery came.
  public var firstSeen: StoreInstant
  /// How long ago that was, by the store's clock.
  public var age: Milliseconds

  public init(id: RecordID, standing: Standing, firstSeen: StoreInstant, age: Milliseconds) {
    self.id = id
    self.standing = standing
    self.firstSeen = firstSeen
    self.age = age
  }

  /// `nil` for a record that stands otherwise.
  public init?(id: RecordID, standing: Standing, firstSeen: StoreInstant, now: StoreInstant) {
    switch standing {
    case .inFlight, .unknown: break
    default: return nil
    }
    self.init(id: id, standing: standing, firstSeen: firstSeen, age: max(now - firstSeen, 0))
  }
}

/// A part of a list: what is open, and what this version cannot read. A record that was there all the while stands in
/// some part of it, and may stand in two.
public struct OpenRecords: Sendable, Equatable {
  /// Maybe none, also where more follow.
  public var records: [OpenRecord]
  /// Records of which nothing can be told: their keys are refused until an operator forgets them.
  public var unreadable: [RecordID]
  /// Where the next part begins; `nil` at the end.
  public var next: String?

  public init(records: [OpenRecord], unreadable: [RecordID] = [], next: String?) {
    self.records = records
    self.unreadable = unreadable
    self.next = next
  }
}
