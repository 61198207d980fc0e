import Foundation
import GRDB
import SemelClient

/// The ways out of the queue other than through a delivery.
extension QueueStore {
  enum CancelAction {
    case cancelled
    /// It may have been carried out: the server is asked first, while this lease keeps others from sending it.
    case inquire(LeasedIntent)
    case tooLate
  }

  func cancel(_ id: Int64, in db: Database) throws -> CancelAction {
    guard let row = try row("id = ?", [id], in: db) else { throw OutboxError.notFound }
    switch QueueSchema.State(rawValue: row["state"]) {
    case .blocked, .ready:
      if row["may_have_run"] as Bool { return .inquire(try leaseForInquiry(row, in: db)) }
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
