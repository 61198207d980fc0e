/// A record as an operator sees it.
public struct RecordView: Sendable, Equatable {
  public var id: RecordID
  public var standing: Standing
  /// The time at which the first delivery arrived.
  public var firstSeen: StoreInstant
  /// The time since `firstSeen`, by the store's clock.
  public var age: Milliseconds
  /// The origin of the latest attempt; `nil` if the record was made without one, or by an earlier version.
  public var attribution: Attribution?
  /// The way in which the outcome was lost; `nil` if it is not unknown, or the way is not known.
  public var cause: LossCause?
  /// Whether an operator has stated the outcome of the latest attempt.
  public var isStated: Bool
  /// The time for which the record is remembered after its end, as its last attempt has it.
  public var remember: Milliseconds
  /// The recipe of the payload's fingerprint, as text; `nil` if this version does not know it.
  public var recipe: String?

  /// - Parameters:
  ///   - isHeld: Whether an owner holds the record by the store's text, so that an unknown outcome means that its lease
  ///     has lapsed.
  ///   - owner: The record's last owner.
  public init(
    id: RecordID, standing: Standing, firstSeen: StoreInstant, now: StoreInstant,
    attribution: Attribution? = nil, isHeld: Bool = false, owner: OwnerToken, remember: Milliseconds,
    recipe: Recipe?
  ) {
    self.id = id
    self.standing = standing
    self.firstSeen = firstSeen
    self.attribution = attribution
    isStated = owner.isOfOperator && !isHeld
    self.remember = remember
    self.recipe = recipe?.plain.text
    age = max(now - firstSeen, 0)
    if case .unknown = standing { cause = isHeld ? .leaseLapsed : attribution?.cause }
  }

  /// Whether the record is in flight or of unknown outcome.
  public var isOpen: Bool {
    switch standing {
    case .inFlight, .unknown: true
    case .absent, .released, .completed, .expired: false
    }
  }
}

/// A part of the list of open records, with those that this version cannot read. A record that existed throughout the
/// listing is in at least one part, and may be in two.
public struct OpenRecords: Sendable, Equatable {
  /// The open records. The array may be empty even if more parts follow.
  public var records: [RecordView]
  /// Records that cannot be read. Their keys are refused until an operator forgets them.
  public var unreadable: [RecordID]
  /// The cursor for the next part; `nil` at the end.
  public var next: String?

  public init(records: [RecordView], unreadable: [RecordID] = [], next: String?) {
    self.records = records
    self.unreadable = unreadable
    self.next = next
  }
}

/// The condition of a search for records by their origin. All parts that are given must hold.
public struct RecordFilter: Sendable, Equatable {
  /// The digests of which the record's key must have one; empty for any key.
  public var keyDigests: [String]
  /// The digest of the caller; `nil` for any caller.
  public var callerDigest: String?
  /// The name of the route; `nil` for any route.
  public var route: String?

  public init(keyDigests: [String] = [], callerDigest: String? = nil, route: String? = nil) {
    self.keyDigests = keyDigests
    self.callerDigest = callerDigest
    self.route = route
  }

  /// Whether a record of this origin is wanted.
  public func matches(_ attribution: Attribution?) -> Bool {
    guard let attribution else { return false }
    return (keyDigests.isEmpty || attribution.keyDigest.map(keyDigests.contains) ?? false)
      && (callerDigest == nil || callerDigest == attribution.callerDigest)
      && (route == nil || route == attribution.route)
  }
}

/// A part of what a search has found. A record that existed throughout the search is in at least one part, and may be
/// in two.
public struct FoundRecords: Sendable, Equatable {
  public var ids: [RecordID]
  /// The cursor for the next part; `nil` at the end.
  public var next: String?

  public init(ids: [RecordID], next: String?) {
    self.ids = ids
    self.next = next
  }
}
