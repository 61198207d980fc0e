import GRDB
import Idempotency
import NIOCore
import Wire

enum TableError: Error, Equatable {
  case sql(SQLError)
  case unreadable(String)
}

/// The entries as rows of the database. Used by the writer inside its transactions.
final class RecordTable {
  /// The formats of the rows.
  enum Format: Int64 {
    case plain = 1
    /// Location and response are encoded, as `OutcomeCodec` does it. The whole of the response is in `body`.
    case encoded = 2
  }

  /// The `state` of a row.
  enum State: Int64 { case inFlight = 1, unknown, released, completed, tombstone, fence }

  /// The bits of a row's `flags`. The end of the record's fence is stored above them, in milliseconds.
  enum Flag {
    static let fenceShift: Int64 = 8
    static let followsUnknown: Int64 = 1
    static let onlyRejectedSoFar: Int64 = 2
  }

  struct Found {
    var entry: StoredEntry?
    var response: Int64?
    static let nothing = Found(entry: nil, response: nil)
  }

  let statements: RecordStatements
  var recipes: [String: Recipe] = [:]

  /// The response that the transaction has read last, with its row number, for several claims of one record.
  private var latestResponse: (number: Int64, response: Outcome)?
  /// The bytes of the responses that the transaction has read. Each reader makes a copy of an encoded response.
  private(set) var bytesRead = 0
  /// Whether the entry that is being found is read with its response.
  var readsResponse = true
  /// The open records, whose changes the transaction's owner commits or rolls back.
  var openRows = OpenRows()

  init(_ database: Database) throws { statements = try RecordStatements(database) }

  func readResponse(_ number: Int64) -> Outcome? {
    guard let latestResponse, latestResponse.number == number else { return nil }
    if case .encoded = latestResponse.response { bytesRead += latestResponse.response.decodedSize }
    return latestResponse.response
  }

  func keep(_ response: Outcome, _ number: Int64) {
    latestResponse = (number, response)
    bytesRead += response.decodedSize
  }

  /// Must be called when rows of responses change, since their numbers are used again.
  func forgetLatestResponse() { latestResponse = nil }

  /// Must be called at the end of a transaction.
  func forgetResponses() {
    latestResponse = nil
    bytesRead = 0
  }

  func touch(_ clock: StoreClock) throws(SQLError) {
    statements.updateClock.bind(1, clock.now().milliseconds)
    try statements.updateClock.run()
  }
}

extension Outcome {
  /// The bytes that it holds once it is decoded, as far as it states them.
  fileprivate var decodedSize: Int {
    guard case .encoded(let encoded) = self, let response = encoded.response else { return size }
    return max(size, Envelope.plainLength(of: response))
  }
}

extension RecordTable {
  func put(_ id: RecordID, _ entry: StoredEntry, over found: Found) throws(SQLError) {
    try removeResponse(found.response)
    statements.replace.bind(1, id.digest)
    statements.replace.bind(2, entry.format.rawValue)
    switch entry {
    case .fence(let attempt, let until, let owner): bindFence(attempt: attempt, until: until, owner)
    case .record(let record): try bind(record)
    }
    try statements.replace.run()
    openRows.put(id.digest, entry)
  }

  func remove(_ id: RecordID, _ found: Found) throws(SQLError) {
    try removeResponse(found.response)
    statements.delete.bind(1, id.digest)
    try statements.delete.run()
    openRows.put(id.digest, nil)
  }

  func removeResponse(_ number: Int64?) throws(SQLError) {
    guard let number else { return }
    forgetLatestResponse()
    statements.deleteResponse.bind(1, number)
    try statements.deleteResponse.run()
  }

  private func bindFence(attempt: Int, until: StoreInstant, _ owner: OwnerToken?) {
    statements.replace.bind(3, State.fence.rawValue)
    statements.replace.bind(4, Int64(attempt))
    statements.replace.bind(5, until.milliseconds)
    statements.replace.bind(6, until.milliseconds)
    for index in Int32(7)...19 { statements.replace.bindNull(index) }
    if let owner { statements.replace.bind(7, owner) }
  }

  private func bind(_ record: StoredRecord) throws(SQLError) {
    let endsAt = record.endsAt.milliseconds
    statements.replace.bind(4, Int64(record.attempt))
    statements.replace.bind(5, endsAt)
    statements.replace.bind(6, endsAt)
    statements.replace.bind(7, record.owner)
    statements.replace.bind(8, record.fingerprint.recipe.text)
    statements.replace.bind(9, record.fingerprint.digest)
    statements.replace.bind(10, record.firstSeen.milliseconds)
    let flags =
      (record.followsUnknown ? Flag.followsUnknown : 0)
      | (record.onlyRejectedSoFar ? Flag.onlyRejectedSoFar : 0)
      | (record.fencedUntil?.milliseconds ?? 0) << Flag.fenceShift
    statements.replace.bind(11, flags)
    statements.replace.bind(12, record.unknownRetention.count)
    statements.replace.bind(13, record.remember.count)
    for index in Int32(14)...19 { statements.replace.bindNull(index) }
    if let attribution = record.attribution { statements.replace.bind(19, attribution.text) }
    // A completion replaces it. An earlier version passes it over.
    if record.uncountedAttempts > 0 { statements.replace.bind(16, Int64(record.uncountedAttempts)) }
    switch record.state {
    case .inFlight(let leaseUntil):
      statements.replace.bind(3, State.inFlight.rawValue)
      statements.replace.bind(14, leaseUntil.milliseconds)
    case .unknown(let since):
      statements.replace.bind(3, State.unknown.rawValue)
      statements.replace.bind(14, since.milliseconds)
    case .released: statements.replace.bind(3, State.released.rawValue)
    case .tombstone: statements.replace.bind(3, State.tombstone.rawValue)
    case .completed(let completion): try bind(completion)
    }
  }

  private func bind(_ completion: StoredCompletion) throws(SQLError) {
    statements.replace.bind(3, State.completed.rawValue)
    statements.replace.bind(6, completion.expiresAt.milliseconds)
    statements.replace.bind(14, completion.recordedAt.milliseconds)
    statements.replace.bind(15, completion.expiresAt.milliseconds)
    statements.replace.bind(16, Int64(completion.outcome.status))
    switch completion.outcome {
    case .whole(let response): statements.replace.bind(18, try insert(response))
    case .statusOnly(_, let location): if let location { statements.replace.bind(17, location) }
    case .encoded(let outcome):
      if let response = outcome.response {
        let row = RecordedResponse(
          status: outcome.status, fields: ByteBuffer(), body: response, trailers: ByteBuffer())
        statements.replace.bind(18, try insert(row))
      } else if let location = outcome.location {
        statements.replace.bind(17, location)
      }
    }
  }

  private func insert(_ response: RecordedResponse) throws(SQLError) -> Int64 {
    forgetLatestResponse()
    let insert = statements.insertResponse
    try insert.lending(1, response.fields) { () throws(SQLError) in
      try insert.lending(2, response.body) { () throws(SQLError) in
        try insert.lending(3, response.trailers) { () throws(SQLError) in try insert.run() }
      }
    }
    invariant(insert.lastInserted > 0, "a response is stored in no row")
    return insert.lastInserted
  }
}

extension StoredEntry {
  fileprivate var format: RecordTable.Format {
    guard case .record(let record) = self, case .completed(let completion) = record.state,
      case .encoded = completion.outcome
    else { return .plain }
    return .encoded
  }
}

extension RecordTable {
  /// Removes up to `limit` entries and responses that are due, and returns their number.
  ///
  /// - Parameter mayContinue: Called after each entry; the sweep ends when it returns false. Sizes of entries differ by
  ///   a factor of ten thousand, so only time can bound the wait of callers.
  func sweep(
    now: StoreInstant, limit: Int, while mayContinue: () -> Bool
  ) throws(SQLError) -> Int {
    var count = 0
    for row in try due(now: now, limit: limit) {
      try removeResponse(row.response)
      if row.endsAt <= now, let fence = fence(row.flags), now < fence {
        try put(RecordID(row.id), .fence(attempt: row.attempt, until: fence), over: .nothing)
      } else {
        let statement = row.endsAt <= now ? statements.delete : statements.bury
        statement.bind(1, row.id)
        try statement.run()
        openRows.put(row.id, nil)
      }
      count += 1
      guard mayContinue() else { break }
    }
    return count
  }

  private struct Due {
    let id: Digest256
    let endsAt: StoreInstant
    let response: Int64?
    let flags: Int64
    let attempt: Int
  }

  private func due(now: StoreInstant, limit: Int) throws(SQLError) -> [Due] {
    statements.selectDue.bind(1, now.milliseconds)
    statements.selectDue.bind(2, Int64(limit))
    defer { statements.selectDue.reset() }
    var due: [Due] = []
    while try statements.selectDue.step() {
      guard let id = statements.selectDue.digest(0) else { continue }
      due.append(
        Due(
          id: id, endsAt: StoreInstant(milliseconds: statements.selectDue.integer(1)),
          response: statements.selectDue.isNull(2) ? nil : statements.selectDue.integer(2),
          flags: statements.selectDue.integer(3), attempt: Int(statements.selectDue.integer(4))))
    }
    return due
  }
}

/// The prepared statements that the writer runs on entries.
final class RecordStatements {
  let select, replace, delete, selectResponse, insertResponse, deleteResponse, selectDue: SQLStatement
  let selectFirst, selectNext, selectFirstOrigins, selectNextOrigins: SQLStatement
  let bury, updateClock, selectFact, replaceFact: SQLStatement

  init(_ database: Database) throws {
    func made(_ text: String) throws -> SQLStatement { try SQLStatement(database, text) }
    select = try made(
      """
      SELECT format, state, attempt, kept_until, owner, recipe, digest, first_seen, flags,
        unknown_retention, remember, at, expires_at, status, location, response, origin
      FROM record WHERE id = ?
      """)
    replace = try made(
      """
      INSERT OR REPLACE INTO record (id, format, state, attempt, kept_until, sweep_at, owner, recipe, digest,
        first_seen, flags, unknown_retention, remember, at, expires_at, status, location, response, origin)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    delete = try made("DELETE FROM record WHERE id = ?")
    selectResponse = try made("SELECT fields, body, trailers FROM response WHERE number = ?")
    insertResponse = try made("INSERT INTO response (fields, body, trailers) VALUES (?, ?, ?)")
    deleteResponse = try made("DELETE FROM response WHERE number = ?")
    selectDue = try made(
      """
      SELECT id, kept_until, response, flags, attempt FROM record WHERE sweep_at <= ?
      ORDER BY sweep_at LIMIT ?
      """)
    selectFirst = try made("SELECT id, state, format FROM record ORDER BY id LIMIT ?1")
    selectNext = try made("SELECT id, state, format FROM record WHERE id > ?2 ORDER BY id LIMIT ?1")
    selectFirstOrigins = try made("SELECT id, origin FROM record ORDER BY id LIMIT ?1")
    selectNextOrigins = try made("SELECT id, origin FROM record WHERE id > ?2 ORDER BY id LIMIT ?1")
    bury = try made(
      """
      UPDATE record SET state = \(RecordTable.State.tombstone.rawValue), sweep_at = kept_until, at = NULL,
        expires_at = NULL, status = NULL, location = NULL, response = NULL
      WHERE id = ?
      """)
    updateClock = try made("UPDATE clock SET latest = ?1, high = 0 WHERE latest <> ?1 OR high <> 0")
    selectFact = try made("SELECT value FROM fact WHERE name = ?")
    replaceFact = try made("INSERT OR REPLACE INTO fact (name, value) VALUES (?, ?)")
  }
}
