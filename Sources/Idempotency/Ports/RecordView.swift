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

/// An index of a store's open records, by which they are listed, counted and found in a time that depends on their own
/// number, and not on the number of all records.
///
/// It decides nothing about a record: what it names is read before it is shown, and nobody claims by it. It may name
/// records that have ended, which a listing takes out, and lack some that `repair` finds. It is confined as its store is.
public protocol OpenRecordIndex: Sendable {
  /// Whether the index is to be used. A store is better read whole, which misses nothing, if that takes a moment, or
  /// while the index is known to lack records.
  func isNeeded() async -> Bool
  /// Whether a text has the form of a cursor of `open(after:)`.
  func isCursor(_ text: String) -> Bool
  /// The next part of the open records: those that cannot be read, then those of unknown outcome with the oldest loss
  /// first, and then those in flight. A record in flight whose outcome is lost
  /// meanwhile may be in no part.
  ///
  /// - Parameter cursor: The `next` of the previous part; `nil` for the first part.
  func open(after cursor: String?) async throws(StoreError) -> OpenRecords
  /// The numbers of open records, without reading one of them.
  func count() async throws(StoreError) -> OpenCount
  /// The open records with one of a filter's keys that the filter matches; none if it has no key.
  func open(matching filter: RecordFilter) async throws(StoreError) -> [RecordID]
  /// Makes the next step of a walk through the whole store, and enters the open records that it finds. Does nothing for
  /// an index that lacks none.
  ///
  /// - Parameters:
  ///   - cursor: The result of the step before; `nil` at the beginning.
  ///   - isUrgent: Whether the walk may take a quarter of the store's time, and not a tenth.
  /// - Returns: The cursor of the next step; `nil` at the end.
  func repair(after cursor: String?, isUrgent: Bool) async throws(StoreError) -> String?
}

/// The numbers of the records that an index names, by state.
public struct OpenCount: Sendable, Equatable {
  public var inFlight: Int
  public var unknown: Int
  public var unreadable: Int

  public init(inFlight: Int = 0, unknown: Int = 0, unreadable: Int = 0) {
    self.inFlight = inFlight
    self.unknown = unknown
    self.unreadable = unreadable
  }
}
