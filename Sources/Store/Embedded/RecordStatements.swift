import GRDB

final class RecordStatements {
  let select: SQLStatement
  let replace: SQLStatement
  let delete: SQLStatement
  let selectResponse: SQLStatement
  let insertResponse: SQLStatement
  let deleteResponse: SQLStatement
  let selectDue: SQLStatement
  let selectFirst: SQLStatement
  let selectNext: SQLStatement
  let selectFirstOrigins: SQLStatement
  let selectNextOrigins: SQLStatement
  let bury: SQLStatement
  let updateClock: SQLStatement
  let selectFact: SQLStatement
  let replaceFact: SQLStatement

  init(_ database: Database) throws {
    select = try SQLStatement(database, StatementText.select)
    replace = try SQLStatement(database, StatementText.replace)
    delete = try SQLStatement(database, StatementText.delete)
    selectResponse = try SQLStatement(database, StatementText.selectResponse)
    insertResponse = try SQLStatement(database, StatementText.insertResponse)
    deleteResponse = try SQLStatement(database, StatementText.deleteResponse)
    selectDue = try SQLStatement(database, StatementText.selectDue)
    selectFirst = try SQLStatement(database, StatementText.selectFirst)
    selectNext = try SQLStatement(database, StatementText.selectNext)
    selectFirstOrigins = try SQLStatement(database, StatementText.selectFirstOrigins)
    selectNextOrigins = try SQLStatement(database, StatementText.selectNextOrigins)
    bury = try SQLStatement(database, StatementText.bury)
    updateClock = try SQLStatement(database, StatementText.updateClock)
    selectFact = try SQLStatement(database, StatementText.selectFact)
    replaceFact = try SQLStatement(database, StatementText.replaceFact)
  }
}

private enum StatementText {
  static let select = """
    SELECT format, state, attempt, kept_until, owner, recipe, digest, first_seen, flags,
      unknown_retention, remember, at, expires_at, status, location, response, origin
    FROM record WHERE id = ?
    """
  static let replace = """
    INSERT OR REPLACE INTO record (id, format, state, attempt, kept_until, sweep_at, owner, recipe, digest,
      first_seen, flags, unknown_retention, remember, at, expires_at, status, location, response, origin)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    """
  static let delete = "DELETE FROM record WHERE id = ?"
  static let selectResponse = "SELECT fields, body, trailers FROM response WHERE number = ?"
  static let insertResponse = "INSERT INTO response (fields, body, trailers) VALUES (?, ?, ?)"
  static let deleteResponse = "DELETE FROM response WHERE number = ?"
  static let selectDue = """
    SELECT id, kept_until, response, flags, attempt FROM record WHERE sweep_at <= ?
    ORDER BY sweep_at LIMIT ?
    """
  static let selectFirst = "SELECT id, state, format FROM record ORDER BY id LIMIT ?1"
  static let selectNext = "SELECT id, state, format FROM record WHERE id > ?2 ORDER BY id LIMIT ?1"
  static let selectFirstOrigins = "SELECT id, origin FROM record ORDER BY id LIMIT ?1"
  static let selectNextOrigins = "SELECT id, origin FROM record WHERE id > ?2 ORDER BY id LIMIT ?1"
  static let bury = """
    UPDATE record SET state = \(RecordTable.State.tombstone.rawValue), sweep_at = kept_until, at = NULL,
      expires_at = NULL, status = NULL, location = NULL, response = NULL
    WHERE id = ?
    """
  static let updateClock = "UPDATE clock SET latest = ?1, high = 0 WHERE latest <> ?1 OR high <> 0"
  static let selectFact = "SELECT value FROM fact WHERE name = ?"
  static let replaceFact = "INSERT OR REPLACE INTO fact (name, value) VALUES (?, ?)"
}
