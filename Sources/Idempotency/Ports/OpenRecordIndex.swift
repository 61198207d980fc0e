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
