import Idempotency
import NIOCore
import Wire

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
