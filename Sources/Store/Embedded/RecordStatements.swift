import GRDB

/// The prepared statements that the writer runs on entries.
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
  let updateMachine: SQLStatement
  let selectFact: SQLStatement
  let replaceFact: SQLStatement

  init(_ database: Database) throws {
    select = try SQLStatement(
      database,
      """
      SELECT format, state, attempt, kept_until, owner, recipe, digest, first_seen, flags,
        unknown_retention, remember, at, expires_at, status, location, response, origin
      FROM record WHERE id = ?
      """)
    replace = try SQLStatement(
      database,
      """
      INSERT OR REPLACE INTO record (id, format, state, attempt, kept_until, sweep_at, owner, recipe, digest,
        first_seen, flags, unknown_retention, remember, at, expires_at, status, location, response, origin)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    delete = try SQLStatement(database, "DELETE FROM record WHERE id = ?")
    selectResponse = try SQLStatement(
      database, "SELECT fields, body, trailers FROM response WHERE number = ?")
    insertResponse = try SQLStatement(
      database, "INSERT INTO response (fields, body, trailers) VALUES (?, ?, ?)")
    deleteResponse = try SQLStatement(database, "DELETE FROM response WHERE number = ?")
    selectDue = try SQLStatement(
      database,
      """
      SELECT id, kept_until, response, flags, attempt FROM record WHERE sweep_at <= ?
      ORDER BY sweep_at LIMIT ?
      """)
    selectFirst = try SQLStatement(database, "SELECT id, state, format FROM record ORDER BY id LIMIT ?1")
    selectNext = try SQLStatement(
      database, "SELECT id, state, format FROM record WHERE id > ?2 ORDER BY id LIMIT ?1")
    selectFirstOrigins = try SQLStatement(database, "SELECT id, origin FROM record ORDER BY id LIMIT ?1")
    selectNextOrigins = try SQLStatement(
      database, "SELECT id, origin FROM record WHERE id > ?2 ORDER BY id LIMIT ?1")
    bury = try SQLStatement(
      database,
      """
      UPDATE record SET state = \(RecordTable.State.tombstone.rawValue), sweep_at = kept_until, at = NULL,
        expires_at = NULL, status = NULL, location = NULL, response = NULL
      WHERE id = ?
      """)
    selectFact = try SQLStatement(database, "SELECT value FROM fact WHERE name = ?")
    replaceFact = try SQLStatement(database, "INSERT OR REPLACE INTO fact (name, value) VALUES (?, ?)")
    updateClock = try SQLStatement(
      database, "UPDATE clock SET latest = ?1, high = ?2 WHERE latest <> ?1 OR high <> ?2")
    updateMachine = try SQLStatement(database, "UPDATE clock SET machine = ?1, counted_from = ?2")
  }
}
