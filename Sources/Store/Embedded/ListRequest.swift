import Idempotency

/// An operator's listing of the next entries, in the writer's queue.
///
/// One thread owns it at a time, like every command.
final class ListRequest: EmbeddedReply<OpenRecords>, EmbeddedRequest, @unchecked Sendable {
  /// The number of entries that one request reads, which takes a millisecond for which callers wait.
  static let stepLength = 1000

  private let cursor: Digest256?

  init(after cursor: Digest256?, reply: Receiver) {
    self.cursor = cursor
    super.init(reply)
  }

  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect {
    result = .success(try table.list(after: cursor, limit: Self.stepLength, now: now))
    return .none
  }
}

extension EmbeddedStore {
  public func isCursor(_ text: String) -> Bool { Digest256(text: text) != nil }

  public func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    let start = cursor.flatMap { Digest256(text: $0) }
    guard cursor == nil || start != nil else {
      throw .unavailable("the list's cursor is not one of the embedded store's")
    }
    let result = await withUnsafeContinuation { reply in
      let request = ListRequest(after: start, reply: .task(reply))
      if !queue.add(request) { request.fail(.unavailable("the store is closed")) }
    }
    return try result.get()
  }
}

extension RecordTable {
  /// Returns the open records among the next entries, in the order of their IDs. Does not read responses, because open
  /// records have none.
  func list(
    after cursor: Digest256?, limit: Int, now: StoreInstant
  ) throws(SQLError) -> OpenRecords {
    var last = cursor
    var count = 0
    var open: [Digest256] = []
    let rows = cursor == nil ? statements.selectFirst : statements.selectNext
    rows.bind(1, Int64(limit))
    if let cursor { rows.bind(2, cursor) }
    while try rows.step() {
      count += 1
      guard let id = rows.digest(0) else { continue }
      last = id
      switch State(rawValue: rows.integer(1)) {
      case .released, .completed, .tombstone, .fence:
        if Format(rawValue: rows.integer(2)) == nil { open.append(id) }
      case .inFlight, .unknown, nil: open.append(id)
      }
    }
    rows.reset()
    return listed(open, now: now, next: count < limit ? nil : last?.text)
  }

  /// Returns the records of the given IDs that are open.
  private func listed(_ open: [Digest256], now: StoreInstant, next: String?) -> OpenRecords {
    var records: [OpenRecord] = []
    var unreadable: [RecordID] = []
    for id in open.map(RecordID.init) {
      do throws(TableError) {
        guard case .record(let record)? = try find(id).entry,
          let listed = OpenRecord(
            id: id, standing: record.standing(now: now), firstSeen: record.firstSeen, now: now)
        else { continue }
        records.append(listed)
      } catch {
        // A damaged page is listed as unreadable, like a row of another format, and does not fail the list.
        unreadable.append(id)
      }
    }
    return OpenRecords(records: records, unreadable: unreadable, next: next)
  }
}
