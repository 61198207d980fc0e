/// A record in flight or of unknown outcome, as an operator sees it in a list.
package struct OpenRecord: Sendable, Equatable {
  package var id: RecordID
  /// `inFlight` or `unknown`.
  package var standing: Standing
  /// When its first delivery came.
  package var firstSeen: StoreInstant
  /// How long ago that was, by the store's clock.
  package var age: Milliseconds

  package init(id: RecordID, standing: Standing, firstSeen: StoreInstant, age: Milliseconds) {
    self.id = id
    self.standing = standing
    self.firstSeen = firstSeen
    self.age = age
  }

  /// `nil` for a record that stands otherwise.
  package init?(id: RecordID, standing: Standing, firstSeen: StoreInstant, now: StoreInstant) {
    switch standing {
    case .inFlight, .unknown: break
    default: return nil
    }
    self.init(id: id, standing: standing, firstSeen: firstSeen, age: max(now - firstSeen, 0))
  }
}

/// A part of a list. A record that was there all the while stands in some part of it, and may stand in two.
package struct OpenRecords: Sendable, Equatable {
  /// Maybe none, also where more follow.
  package var records: [OpenRecord]
  /// Where the next part begins; `nil` at the end.
  package var next: String?

  package init(records: [OpenRecord], next: String?) {
    self.records = records
    self.next = next
  }
}
