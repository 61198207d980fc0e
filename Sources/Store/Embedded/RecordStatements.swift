import GRDB

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
