import Idempotency

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
