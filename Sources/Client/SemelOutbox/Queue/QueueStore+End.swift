import Foundation
import GRDB
import SemelClient

/// The ends of intents, and what follows from them for others.
extension QueueStore {
  /// Ends an intent that has not ended, and all those that fail with it. Returns whether it had not ended.
  @discardableResult
  func end(_ id: Int64, _ outcome: QueuedOutcome, in db: Database) throws -> Bool {
    var (ends, waiting) = ([End](), [(id, outcome)])
    while let (id, outcome) = waiting.popLast() {
      guard let row = try row("id = ? AND state < 3", [id], in: db) else { continue }
      // A row that has lost its key ends as the others do, which it would otherwise keep from ending.
      let name = try? name(row)
      try write(outcome, of: row, key: name?.key, in: db)
      ends.append(End(intent: name, outcome: outcome))
      waiting += try pass(outcome, of: id, in: db)
      if let group: String = row["grp"] {
        waiting += try advance(
          group, behind: id, outcome, GroupRule(rawValue: row["rule"]) ?? .proceed, in: db)
      }
    }
    if !ends.isEmpty { try didEnd(db, ends) }
    return !ends.isEmpty
  }

  private func write(_ outcome: QueuedOutcome, of row: Row, key: IntentKey?, in db: Database) throws {
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
    // The request stays where a second tap may still have to be compared with it, and its response is sealed as it is.
    let keepsRequest = row["once"] as String? != nil && row["body"] as Data? != nil
    let isSealed = keepsRequest ? row["is_sealed"] as Bool : seal != nil
    var body: Data?
    if let key, let bytes = response?.body, !bytes.isEmpty, bytes.count <= limits.maxResponseBody {
      body = isSealed ? try sealed(bytes, key) : Data(bytes)
    }
    try db.run(
      sql: """
        UPDATE semel_intent SET
          state = 3, lease_owner = NULL, lease_boot = NULL, lease_until = NULL, ended_at = ?, ending = ?,
          was_replayed = ?, response_head = ?, response_body = ?, detail = ?, is_sealed = ?,
          body = CASE WHEN once IS NULL THEN NULL ELSE body END
        WHERE id = ?
        """,
      arguments: [
        now, ending, wasReplayed, try response.map { try Self.json($0.head) }, body, detail, isSealed,
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

/// The ways out of the queue other than through a delivery.
extension QueueStore {
  enum CancelAction {
    case cancelled
    /// It may have been carried out: the server is asked first, while this lease keeps others from sending it. Else it
    /// is sent after the rest of its pause.
    case inquire(LeasedIntent, rest: Duration)
    case tooLate
  }

  func cancel(_ id: Int64, in db: Database) throws -> CancelAction {
    guard let row = try row("id = ?", [id], in: db) else { throw OutboxError.notFound }
    switch QueueSchema.State(rawValue: row["state"]) {
    case .blocked, .ready:
      if row["may_have_run"] as Bool {
        let rest = Duration.milliseconds(max(0, row["due_at"] - now))
        return .inquire(try leaseForInquiry(row, in: db), rest: rest)
      }
      try end(id, .cancelled(.requested), in: db)
      return .cancelled
    case .sending, .ended, nil: return .tooLate
    }
  }

  private func leaseForInquiry(_ row: Row, in db: Database) throws -> LeasedIntent {
    let lease = "\(owner)/\(environment.random())"
    try db.run(
      sql: "UPDATE semel_intent SET state = 2, lease_owner = ?, lease_boot = ?, lease_until = ? WHERE id = ?",
      arguments: [
        lease, leaseClock.boot, (leaseClock.elapsed() + leaseDuration).milliseconds, row["id"] as Int64,
      ])
    return LeasedIntent(
      name: try name(row), intent: try stored(row), lifecycle: .queued(progress(row), policy: policy),
      lease: lease,
      start: environment.now(), sinceLastDelivery: nil)
  }

  /// Ends an intent whose object has come from the server by another way. Returns whether there was such an intent.
  func received(_ key: IntentKey, _ response: Response, in db: Database) throws -> Bool {
    guard let row = try row("key = ? AND state < 3", [key.rawValue], in: db) else { return false }
    return try end(row["id"], .completed(response, wasReplayed: true), in: db)
  }

  func statistics(in db: Database) throws -> QueueStatistics {
    let rows = try db.rows(
      sql: "SELECT state, count(*) AS count, min(created_at) AS oldest FROM semel_intent GROUP BY state")
    var statistics = QueueStatistics()
    var oldest: Int64?
    for row in rows {
      let count: Int = row["count"]
      switch QueueSchema.State(rawValue: row["state"]) {
      case .blocked: statistics.blocked = count
      case .ready: statistics.ready = count
      case .sending: statistics.sending = count
      case .ended, nil:
        statistics.ended = count
        continue
      }
      oldest = min(oldest ?? .max, row["oldest"])
    }
    statistics.oldestOpen = oldest.map { .milliseconds(max(0, now - $0)) }
    statistics.heldGroups = try db.value(Int.self, sql: "SELECT count(*) FROM semel_held_group") ?? 0
    return statistics
  }
}

/// The numbers of a queue.
public struct QueueStatistics: Hashable, Sendable {
  /// The intents that wait for another one.
  public var blocked = 0
  /// The intents that are sent at their time.
  public var ready = 0
  /// The intents whose delivery is under way.
  public var sending = 0
  /// The intents that have ended and are not purged yet.
  public var ended = 0
  /// The groups that stand still until they are resumed.
  public var heldGroups = 0
  /// The age of the oldest intent that has not ended.
  public var oldestOpen: Duration?
}
