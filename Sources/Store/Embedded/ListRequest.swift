import Idempotency

extension EmbeddedStore {
  /// The number of entries that one request reads, which takes a millisecond.
  private static let stepLength = 1000

  public func isCursor(_ text: String) -> Bool { Digest256(text: text) != nil }

  public func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    let start = try Self.place(cursor)
    return try await reading { (table, now) throws(SQLError) in
      try table.list(after: start, limit: Self.stepLength, now: now)
    }
  }

  public func search(
    _ filter: RecordFilter, after cursor: String?
  ) async throws(StoreError) -> FoundRecords {
    let start = try Self.place(cursor)
    return try await reading { (table, _) throws(SQLError) in
      try table.search(filter, after: start, limit: Self.stepLength)
    }
  }

  private static func place(_ cursor: String?) throws(StoreError) -> Digest256? {
    let start = cursor.flatMap { Digest256(text: $0) }
    guard cursor == nil || start != nil else {
      throw .unavailable("the list's cursor is not one of the embedded store's")
    }
    return start
  }
}

extension RecordTable {
  /// Returns the open records among the next entries, which have no responses.
  func list(
    after cursor: Digest256?, limit: Int, now: StoreInstant
  ) throws(SQLError) -> OpenRecords {
    let (open, last) = try mayBeOpen(after: cursor, limit: limit)
    return listed(open, now: now, next: last?.text)
  }

  /// Returns those of the next entries that are open or unknown to this version, and the last of all; `nil` at the end.
  func mayBeOpen(
    after cursor: Digest256?, limit: Int
  ) throws(SQLError) -> (ids: [Digest256], last: Digest256?) {
    var open: [Digest256] = []
    let rows = cursor == nil ? statements.selectFirst : statements.selectNext
    let last = try walk(rows, after: cursor, limit: limit) { id in
      switch State(rawValue: rows.integer(1)) {
      case .released, .completed, .tombstone, .fence:
        if Format(rawValue: rows.integer(2)) == nil { open.append(id) }
      case .inFlight, .unknown, nil: open.append(id)
      }
    }
    return (open, last)
  }

  /// Hands over the IDs of the next entries, the first column of `rows`. Returns the last one; `nil` at the end.
  private func walk(
    _ rows: SQLStatement, after cursor: Digest256?, limit: Int, _ body: (Digest256) -> Void
  ) throws(SQLError) -> Digest256? {
    var last = cursor
    var count = 0
    rows.bind(1, Int64(limit))
    if let cursor { rows.bind(2, cursor) }
    while try rows.step() {
      count += 1
      guard let id = rows.digest(0) else { continue }
      last = id
      body(id)
    }
    rows.reset()
    return count < limit ? nil : last
  }

  func listed(_ open: [Digest256], now: StoreInstant, next: String?) -> OpenRecords {
    var records: [RecordView] = []
    var unreadable: [RecordID] = []
    for id in open.map(RecordID.init) {
      do throws(TableError) {
        guard case .record(let record)? = try find(id).entry else { continue }
        let view = record.view(id, now: now)
        if view.isOpen { records.append(view) }
      } catch {
        // Does not fail the list.
        unreadable.append(id)
      }
    }
    return OpenRecords(records: records, unreadable: unreadable, next: next)
  }

  func search(
    _ filter: RecordFilter, after cursor: Digest256?, limit: Int
  ) throws(SQLError) -> FoundRecords {
    var found: [RecordID] = []
    let rows = cursor == nil ? statements.selectFirstOrigins : statements.selectNextOrigins
    let last = try walk(rows, after: cursor, limit: limit) { id in
      guard !rows.isNull(1), filter.matches(Attribution(text: rows.string(1))) else { return }
      found.append(RecordID(id))
    }
    return FoundRecords(ids: found, next: last?.text)
  }
}

extension StoredRecord {
  /// The record as an operator sees it, by default with its standing as stored.
  func view(_ id: RecordID, now: StoreInstant, standing: Standing? = nil) -> RecordView {
    RecordView(
      id: id, standing: standing ?? self.standing(now: now), firstSeen: firstSeen, now: now,
      attribution: attribution, isHeld: isHeld, owner: owner, remember: remember,
      recipe: fingerprint.recipe)
  }
}

/// Work on the table in the writer's queue, other than a command on one record.
final class TableRequest<Response: Sendable>: EmbeddedReply<Response>, EmbeddedRequest, @unchecked Sendable {
  /// Returns the response, and whether anything was written.
  typealias Done = (result: Result<Response, StoreError>, hasWritten: Bool)
  typealias Work = @Sendable (RecordTable, StoreInstant) throws(SQLError) -> Done

  private let work: Work

  init(reply: Receiver, _ work: @escaping Work) {
    self.work = work
    super.init(reply)
  }

  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect {
    let done = try work(table, now)
    result = done.result
    return RecordEffect(hasWritten: done.hasWritten, ended: nil)
  }
}

extension EmbeddedStore: NamespaceFacts {
  public func fact(_ fact: NamespaceFact) async throws(StoreError) -> String? {
    try await reading { (table, _) throws(SQLError) in try table.value(of: fact) }
  }

  public func replace(
    _ fact: NamespaceFact, _ expected: String?, with value: String
  ) async throws(StoreError) -> String? {
    try await queued { (table, _) throws(SQLError) in
      let found = try table.value(of: fact)
      guard found == expected else { return (.success(found), false) }
      try table.set(fact, to: value)
      return (.success(value), true)
    }
  }

  /// Queues work and waits for its result.
  func queued<Response: Sendable>(
    _ work: @escaping TableRequest<Response>.Work
  ) async throws(StoreError) -> Response {
    let result = await withUnsafeContinuation { enqueue(TableRequest(reply: .task($0), work)) }
    return try result.get()
  }

  func reading<Response: Sendable>(
    _ read: @escaping @Sendable (RecordTable, StoreInstant) throws(SQLError) -> Response
  ) async throws(StoreError) -> Response {
    try await queued { (table, now) throws(SQLError) in (.success(try read(table, now)), false) }
  }
}

extension RecordTable {
  func value(of fact: NamespaceFact) throws(SQLError) -> String? {
    statements.selectFact.bind(1, fact.name)
    defer { statements.selectFact.reset() }
    return try statements.selectFact.step() ? statements.selectFact.string(0) : nil
  }

  func set(_ fact: NamespaceFact, to value: String) throws(SQLError) {
    statements.replaceFact.bind(1, fact.name)
    statements.replaceFact.bind(2, value)
    try statements.replaceFact.run()
  }
}
