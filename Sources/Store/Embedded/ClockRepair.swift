import GRDB
import Idempotency

/// Brings back what was written by a clock that was ahead.
enum ClockRepair {
  /// Moves all times of those records back that were written far ahead of `now`. What is kept under a bare end (released
  /// records, tombstones, fences) stays, and is kept the longer.
  ///
  /// Looks at every record: done only after a clock was wrong.
  static func moveBack(_ database: Database, by span: Milliseconds, now: StoreInstant) throws {
    try database.execute(
      sql: """
        UPDATE record SET at = at - :span, first_seen = min(first_seen, :now), expires_at = expires_at - :span,
          kept_until = kept_until - :span, sweep_at = sweep_at - :span
        WHERE at > :bound
        """,
      arguments: [
        "span": span.count, "now": now.milliseconds, "bound": (now + StoreClock.bound).milliseconds,
      ])
  }
}
