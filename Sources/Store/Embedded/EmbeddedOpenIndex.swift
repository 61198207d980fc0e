import Idempotency
import Wire

/// The index of open records of an embedded store: the rows that its writer has in memory. It lacks nothing that the
/// file has, but for rows that somebody edits meanwhile.
struct EmbeddedOpenIndex: OpenRecordIndex {
  /// The number of records of one part, which are read at once.
  private static let partLength = 100

  let store: EmbeddedStore

  /// Whether all open records are known. Until then, a walk lists them.
  func isNeeded() async -> Bool { store.figures.hasOpenIndex }

  func isCursor(_ text: String) -> Bool { OpenRows.Place(text) != nil }

  func open(after cursor: String?) async throws(StoreError) -> OpenRecords {
    let place = cursor.flatMap(OpenRows.Place.init)
    guard cursor == nil || place != nil else {
      throw .unavailable("the list's cursor is not one of the index")
    }
    return try await store.readingOpen { (table, now) throws(SQLError) in
      let (places, isLast) = table.openRows.part(after: place, limit: Self.partLength)
      return try table.openRecords(places.map(\.id), now: now, next: isLast ? nil : places.last?.text)
    }
  }

  func count() async throws(StoreError) -> OpenCount {
    try await store.readingOpen { (table, now) throws(SQLError) in table.openRows.count(now: now) }
  }

  func open(matching filter: RecordFilter) async throws(StoreError) -> [RecordID] {
    let keys = Set(filter.keyDigests.compactMap { UInt32($0, radix: 16) })
    let ids = try await store.readingOpen { (table, _) throws(SQLError) in table.openRows.ids(ofKeys: keys) }
    var found: [RecordID] = []
    for start in stride(from: 0, to: ids.count, by: Self.partLength) {
      let part = ids[start..<min(start + Self.partLength, ids.count)].map(\.digest)
      let records = try await store.readingOpen { (table, now) throws(SQLError) in
        try table.openRecords(part, now: now, next: nil).records
      }
      found += records.filter { filter.matches($0.attribution) }.map(\.id)
    }
    return found
  }

  /// The writer's own walk leaves nothing to repair.
  func repair(after cursor: String?, isUrgent: Bool) async throws(StoreError) -> String? { nil }
}

extension EmbeddedStore {
  public var openIndex: (any OpenRecordIndex)? { EmbeddedOpenIndex(store: self) }

  /// Reads the open records, unless some may be missing.
  fileprivate func readingOpen<Response: Sendable>(
    _ read: @escaping @Sendable (RecordTable, StoreInstant) throws(SQLError) -> Response
  ) async throws(StoreError) -> Response {
    try await queued { (table, now) throws(SQLError) in (try table.whileOpenIsWhole(now, read), false) }
  }
}

extension RecordTable {
  /// The result of a reading of the open records, which is refused while some may be missing.
  func whileOpenIsWhole<Response>(
    _ now: StoreInstant, _ read: (RecordTable, StoreInstant) throws(SQLError) -> Response
  ) throws(SQLError) -> Result<Response, StoreError> {
    guard openRows.isWhole else {
      return .failure(.unavailable("the store has not found all open records yet; repeat the command"))
    }
    return .success(try read(self, now))
  }

  func openRecords(
    _ ids: [Digest256], now: StoreInstant, next: String?
  ) throws(SQLError) -> OpenRecords {
    let part = listed(ids, now: now, next: next)
    let open = Set(part.records.map(\.id.digest))
    for id in part.unreadable { openRows.putUnreadable(id.digest) }
    for id in Set(ids).subtracting(open).subtracting(part.unreadable.map(\.digest)) { openRows.put(id, nil) }
    return part
  }

  func findOpen(limit: Int) throws(SQLError) -> Bool {
    let (ids, last) = try mayBeOpen(after: openRows.walked, limit: limit)
    var found: [(id: Digest256, row: OpenRow)] = []
    for id in ids {
      do throws(TableError) {
        let entry = try find(RecordID(id), readsResponse: false).entry
        if let row = entry.flatMap(OpenRow.init) { found.append((id, row)) }
      } catch {
        if case .sql(let error) = error, !error.isCorrupt { throw error }
        found.append((id, .unreadable))
      }
    }
    return openRows.enter(found, to: last)
  }
}

extension OpenRows.Place {
  init?(_ text: String) {
    guard text.first == "o" else { return nil }
    let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let lapse = Int64(parts[0]), let id = Digest256(text: String(parts[1])) else {
      return nil
    }
    self.init(lapse: lapse, id: id)
  }

  var text: String { "o\(lapse).\(id.text)" }
}
