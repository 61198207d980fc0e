import Foundation
import GRDB
import SemelClient

/// The ends of intents, and what follows from them for others.
extension QueueStore {
  /// Ends an intent that has not ended, and all those that fail with it. Returns whether it had not ended.
  @discardableResult
  func end(_ id: Int64, _ outcome: QueuedOutcome, in db: Database) throws -> Bool {
    var (hasEnded, waiting) = (false, [(id, outcome)])
    while let (id, outcome) = waiting.popLast() {
      guard let row = try row("id = ? AND state < 3", [id], in: db) else { continue }
      try write(outcome, of: row, in: db)
      hasEnded = true
      try didEnd(db, try name(row), outcome)
      waiting += try pass(outcome, of: id, in: db)
      if let group: String = row["grp"] {
        waiting += try advance(
          group, behind: id, outcome, GroupRule(rawValue: row["rule"]) ?? .proceed, in: db)
      }
    }
    return hasEnded
  }

  private func write(_ outcome: QueuedOutcome, of row: Row, in db: Database) throws {
    var (ending, wasReplayed): (String, Bool?) = ("expired", nil)
    var (response, detail): (Response?, String?) = (nil, nil)
    switch outcome {
    case .completed(let completed, let replayed):
      (ending, response, wasReplayed) = ("completed", completed, replayed)
    case .rejected(let rejected): (ending, response) = ("rejected", rejected)
    case .unknown(let problem): (ending, detail) = ("unknown", try problem.map(Self.json))
    case .expired: break
    case .cancelled(let reason): (ending, detail) = ("cancelled", try Self.json(reason))
    }
    var body: Data?
    if let bytes = response?.body, !bytes.isEmpty, bytes.count <= limits.maxResponseBody {
      body = try sealed(bytes, try key(row))
    }
    // The request stays where a second tap may still have to be compared with it.
    try db.run(
      sql: """
        UPDATE semel_intent SET
          state = 3, lease_owner = NULL, lease_boot = NULL, lease_until = NULL, ended_at = ?, ending = ?,
          was_replayed = ?, response_head = ?, response_body = ?, detail = ?,
          body = CASE WHEN once IS NULL THEN NULL ELSE body END
        WHERE id = ?
        """,
      arguments: [
        now, ending, wasReplayed, try response.map { try Self.json($0.head) }, body, detail,
        row["id"] as Int64,
      ])
  }

  /// Gives the values of a response to the intents that wait for them. Returns those that cannot have theirs.
  func pass(
    _ outcome: QueuedOutcome, of source: Int64, in db: Database
  ) throws -> [(Int64, QueuedOutcome)] {
    let waiting = try db.rows(
      sql: "SELECT intent, name, pointer FROM semel_value WHERE source = ? AND value IS NULL",
      arguments: [source])
    guard !waiting.isEmpty else { return [] }
    var document: JSONValue?
    if case .completed(let response, _) = outcome { document = JSONValue(document: response.body) }
    var failed: [(Int64, QueuedOutcome)] = []
    for row in waiting {
      let intent: Int64 = row["intent"]
      guard let literal = document?.value(at: row["pointer"])?.literal else {
        failed.append((intent, .cancelled(.dependencyFailed(source))))
        continue
      }
      try db.run(
        sql: "UPDATE semel_value SET value = ? WHERE intent = ? AND name = ?",
        arguments: [literal, intent, row["name"] as String])
      try admit(intent, in: db)
    }
    return failed
  }

  private func advance(
    _ group: String, behind id: Int64, _ outcome: QueuedOutcome, _ rule: GroupRule, in db: Database
  ) throws -> [(Int64, QueuedOutcome)] {
    switch QueueRules.afterEnd(outcome, rule: rule) {
    case .admitNext: break
    case .hold:
      try db.run(
        sql: "INSERT OR REPLACE INTO semel_held_group (grp, intent) VALUES (?, ?)", arguments: [group, id])
    case .cancelRest:
      let rest = try db.rows(
        sql: "SELECT id FROM semel_intent WHERE grp = ? AND state < 2 ORDER BY id DESC",
        arguments: [group])
      return rest.map { ($0["id"], .cancelled(.groupFailed(id))) }
    }
    try admitFirst(of: group, in: db)
    return []
  }

  /// Removes intents that ended before a time, and with them the names of their `once:`.
  func purge(endedBefore time: Date, in db: Database) throws -> Int {
    try db.run(
      sql: """
        DELETE FROM semel_intent WHERE state = 3 AND ended_at < ?
          AND id NOT IN (SELECT source FROM semel_value WHERE value IS NULL)
        """, arguments: [Self.milliseconds(time)])
    return db.changesCount
  }
}
