import Idempotency
import Wire

/// An open record of the file, as it is kept in memory.
struct OpenRow: Equatable {
  /// The end of its lease, or the loss of its outcome.
  let lapse: StoreInstant
  /// The moment from which an unknown outcome counts as expired.
  let openUntil: StoreInstant
  /// The digest of its key; `nil` if it is not known.
  let key: UInt32?
  /// Whether an owner holds it, even if its lease has lapsed.
  let isHeld: Bool

  static let unreadable = OpenRow(
    lapse: StoreInstant(milliseconds: -1), openUntil: StoreInstant(milliseconds: .max), key: nil,
    isHeld: false)

  init?(_ entry: StoredEntry) {
    guard case .record(let record) = entry else { return nil }
    switch record.state {
    case .inFlight(let loss), .unknown(let loss):
      lapse = max(loss, StoreInstant(milliseconds: 0))
      openUntil = loss + record.unknownRetention
    case .released, .completed, .tombstone: return nil
    }
    key = record.attribution?.keyDigest.flatMap { UInt32($0, radix: 16) }
    isHeld = record.isHeld
  }

  private init(lapse: StoreInstant, openUntil: StoreInstant, key: UInt32?, isHeld: Bool) {
    self.lapse = lapse
    self.openUntil = openUntil
    self.key = key
    self.isHeld = isHeld
  }

  var isUnreadable: Bool { self == .unreadable }
}

/// The open records of the file, in the memory of the one process that writes it. Pure.
///
/// The table notes each change of a row, which counts once its transaction is committed. Until a walk after the start
/// has entered what earlier processes have left, `isWhole` is false, as it is once there are too many.
struct OpenRows {
  /// The position in a listing: what cannot be read, then by the time of the loss or of the lease's end.
  struct Place: Comparable {
    let lapse: Int64
    let id: Digest256

    static func < (left: Place, right: Place) -> Bool {
      if left.lapse != right.lapse { return left.lapse < right.lapse }
      for index in 0..<4 where left.id.words[index] != right.id.words[index] {
        return left.id.words[index] < right.id.words[index]
      }
      return false
    }
  }

  /// The maximum number of rows, which take 30 MB.
  static let maxCount = 250_000

  private let maxCount: Int
  private var rows: [Digest256: OpenRow] = [:]
  private var changes: [(id: Digest256, row: OpenRow?)] = []
  private(set) var isWhole = false
  private(set) var walked: Digest256?

  init(maxCount: Int = OpenRows.maxCount) { self.maxCount = maxCount }

  /// Notes the entry that a record gets in the running transaction; `nil` if it is removed.
  mutating func put(_ id: Digest256, _ entry: StoredEntry?) {
    changes.append((id, entry.flatMap(OpenRow.init)))
  }

  mutating func putUnreadable(_ id: Digest256) { changes.append((id, .unreadable)) }

  mutating func commit() {
    for change in changes { rows[change.id] = change.row }
    changes.removeAll(keepingCapacity: true)
    if rows.count > maxCount { begin() }
  }

  mutating func rollBack() { changes.removeAll(keepingCapacity: true) }

  /// Takes a step of the walk: the open records among the entries up to `last`, `nil` at the end. Returns whether there
  /// is room for them; else the walk begins anew.
  mutating func enter(_ found: [(id: Digest256, row: OpenRow)], to last: Digest256?) -> Bool {
    invariant(changes.isEmpty, "the walk reads what is not committed")
    for row in found { rows[row.id] = row.row }
    guard rows.count <= maxCount else {
      begin()
      return false
    }
    walked = last
    isWhole = last == nil
    return true
  }

  private mutating func begin() {
    rows = [:]
    walked = nil
    isWhole = false
  }
}

extension OpenRows {
  /// The next rows of a listing, and whether they are the last ones. Reads every row.
  func part(after place: Place?, limit: Int) -> (places: [Place], isLast: Bool) {
    var (places, count): ([Place], Int) = ([], 0)
    for (id, row) in rows {
      let next = Place(lapse: row.lapse.milliseconds, id: id)
      if let place, next <= place { continue }
      count += 1
      if places.count == limit {
        guard next < places[limit - 1] else { continue }
        places.removeLast()
      }
      places.insert(next, at: places.firstIndex { next < $0 } ?? places.count)
    }
    return (places, count <= limit)
  }

  /// The numbers of the records that are open. Reads every row.
  func count(now: StoreInstant) -> OpenCount {
    var count = OpenCount()
    for row in rows.values where now < row.openUntil {
      if row.isUnreadable {
        count.unreadable += 1
      } else if row.isHeld, now < row.lapse {
        count.inFlight += 1
      } else {
        count.unknown += 1
      }
    }
    return count
  }

  /// The records with one of these digests of keys. Reads every row.
  func ids(ofKeys keys: Set<UInt32>) -> [RecordID] {
    rows.compactMap { id, row in row.key.map(keys.contains) == true ? RecordID(id) : nil }
  }
}

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
