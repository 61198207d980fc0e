import Foundation
import GRDB
import SemelClient

/// An intent that this process may send, until its lease lapses.
struct LeasedIntent: Sendable {
  let name: QueuedIntent
  let intent: Intent
  var lifecycle: IntentLifecycle
  /// The name of this lease. Each has another, so that a process that lost one cannot take the next for it.
  let lease: String
  let start: Date
  /// The time since the last delivery that may have been carried out, where there was one.
  let sinceLastDelivery: Duration?
}

extension QueueStore {
  /// Leases the intents to send now, at most `limit`. Those whose time is over end. Those that cannot be read, or whose
  /// end the application refuses, are put off: they must not keep the others from being sent.
  func lease(
    limit: Int, in db: Database
  ) throws -> (leased: [LeasedIntent], failures: [OutboxError]) {
    try takeOver(in: db)
    let now = now
    // A time that is further ahead than any pause was set by a clock that has been set back since.
    let longest = max(policy.queue.backoff.max, policy.maxRetryAfter).milliseconds
    let horizon = now + 2 * min(longest, 1 << 50)
    let rows = try db.rows(
      sql: """
        SELECT * FROM semel_intent WHERE state = 1 AND due_at <= ?1
        UNION ALL SELECT * FROM semel_intent WHERE state = 1 AND due_at > ?2
        ORDER BY due_at, id LIMIT ?3
        """, arguments: [now, horizon, limit])
    var (leased, failures): ([LeasedIntent], [OutboxError]) = ([], [])
    for row in rows {
      do {
        try db.inSavepoint {
          if let next = try begin(row, in: db) { leased.append(next) }
          return .commit
        }
      } catch let error where Self.concernsOneIntent(error) {
        failures.append(OutboxError(error))
        try db.run(
          sql: "UPDATE semel_intent SET due_at = ? WHERE id = ?",
          arguments: [now + 60_000, row["id"] as Int64])
      }
    }
    return (leased, failures)
  }

  private static func concernsOneIntent(_ error: any Error) -> Bool {
    error is EndRefused || (error as? OutboxError)?.isUnreadable == true
  }

  /// Takes the leases that have lapsed. Their owners may have sent, and have said nothing since.
  private func takeOver(in db: Database) throws {
    try db.run(
      sql: """
        UPDATE semel_intent SET
          state = 1, may_have_run = 1, first_sent_at = coalesce(first_sent_at, last_sent_at), lease_owner = NULL
        WHERE state = 2 AND (lease_until <= ? OR lease_boot <> ?)
        """, arguments: [leaseClock.elapsed().milliseconds, leaseClock.boot])
  }

  private func begin(_ row: Row, in db: Database) throws -> LeasedIntent? {
    let (date, id, progress) = (environment.now(), row["id"] as Int64, progress(row))
    var lifecycle = IntentLifecycle.queued(progress, policy: policy)
    switch lifecycle.begin(now: date) {
    case .end(let end):
      try self.end(id, QueuedOutcome(end), in: db)
      return nil
    case .send:
      let (name, intent) = (try name(row), try resolved(row, in: db))
      let leaseName = "\(owner)/\(environment.random())"
      try db.run(
        sql: """
          UPDATE semel_intent SET state = 2, deliveries = deliveries + 1, last_sent_at = ?, lease_owner = ?,
            lease_boot = ?, lease_until = ? WHERE id = ?
          """,
        arguments: [
          Self.milliseconds(date), leaseName, leaseClock.boot,
          (leaseClock.elapsed() + leaseDuration).milliseconds,
          id,
        ])
      let last = progress.mayHaveRun ? row["last_sent_at"] as Int64? : nil
      return LeasedIntent(
        name: name, intent: intent, lifecycle: lifecycle, lease: leaseName, start: date,
        sinceLastDelivery: last.map { .milliseconds(max(0, now - $0)) })
    }
  }

  /// The intent with the values of earlier responses in their places. They are written back before the first byte is
  /// sent, so that each delivery has the same bytes.
  private func resolved(_ row: Row, in db: Database) throws -> Intent {
    let intent = try stored(row)
    let id: Int64 = row["id"]
    let values = try db.rows(sql: "SELECT name, value FROM semel_value WHERE intent = ?", arguments: [id])
    guard !values.isEmpty, row["deliveries"] as Int == 0 else { return intent }
    let literals = try Dictionary(
      uniqueKeysWithValues: values.map { row in
        guard let value: String = row["value"] else {
          throw OutboxError.unreadableIntent("It lacks a value of an earlier response.")
        }
        return (row["name"] as String, value)
      })
    let request = ValueSubstitution.apply(literals, to: intent.request)
    var body: Data?
    if case .bytes(let bytes) = request.body { body = try sealed(bytes, intent.key) }
    try db.run(
      sql: "UPDATE semel_intent SET path = ?, body = ?, is_sealed = ? WHERE id = ?",
      arguments: [request.path, body, seal != nil, id])
    return Intent(key: intent.key, request: request)
  }

  /// Extends a lease. Returns whether it is still this one's.
  func renew(_ leased: LeasedIntent, in db: Database) throws -> Bool {
    try db.run(
      sql: "UPDATE semel_intent SET lease_until = ? WHERE id = ? AND state = 2 AND lease_owner = ?",
      arguments: [(leaseClock.elapsed() + leaseDuration).milliseconds, leased.name.id, leased.lease])
    return db.changesCount == 1
  }

  /// Writes the end of a delivery that leaves its intent open, and gives the lease back.
  func postpone(_ leased: LeasedIntent, by pause: Duration, in db: Database) throws {
    let progress = leased.lifecycle.progress
    try db.run(
      sql: """
        UPDATE semel_intent SET state = 1, due_at = ?, attempts = ?, failures = ?, may_have_run = ?,
          first_sent_at = ?, expires = ?, lease_owner = NULL, lease_boot = NULL, lease_until = NULL
        WHERE id = ? AND state = 2 AND lease_owner = ?
        """,
      arguments: [
        now + pause.asPause.milliseconds, progress.attempts, progress.failures, progress.mayHaveRun,
        progress.firstSentAt.map(Self.milliseconds), progress.expires.map(Self.milliseconds), leased.name.id,
        leased.lease,
      ])
  }

  /// Writes the end of an intent. An owner that has lost its lease writes nothing: the next one learns the end.
  func end(_ leased: LeasedIntent, _ outcome: QueuedOutcome, in db: Database) throws -> Bool {
    guard try row("id = ? AND state = 2 AND lease_owner = ?", [leased.name.id, leased.lease], in: db) != nil
    else {
      return false
    }
    return try end(leased.name.id, outcome, in: db)
  }

  /// The time until the next intent is due.
  func untilDue(in db: Database) throws -> Duration? {
    let due = try db.value(Int64.self, sql: "SELECT min(due_at) FROM semel_intent WHERE state = 1")
    return due.map { .milliseconds(max(0, $0 - now)) }
  }
}

extension QueuedOutcome {
  init(_ end: IntentLifecycle.End) {
    switch end {
    case .completed(let response, let wasReplayed): self = .completed(response, wasReplayed: wasReplayed)
    case .rejected(let response): self = .rejected(response)
    case .unknown(let problem): self = .unknown(problem)
    case .notExecuted: self = .expired
    }
  }
}

/// The replacement of marks in a request with values from earlier responses.
enum ValueSubstitution {
  static func mark(_ name: String) -> String { "{semel:\(name)}" }

  /// The request with each mark replaced. `values` are JSON literals by the names of their marks.
  static func apply(_ values: [String: String], to request: IntentRequest) -> IntentRequest {
    var request = request
    for (name, literal) in values {
      let text = JSONValue(document: [UInt8](literal.utf8))?.text ?? literal
      request.path = request.path.replacing(mark(name), with: text.percentEncodedForQuery)
      guard case .bytes(let bytes) = request.body else { continue }
      let inner = literal.hasPrefix("\"") ? String(literal.dropFirst().dropLast()) : literal
      let body = String(decoding: bytes, as: UTF8.self)
        .replacing("\"\(mark(name))\"", with: literal)
        .replacing(mark(name), with: inner)
      request.body = .bytes([UInt8](body.utf8))
    }
    return request
  }
}
