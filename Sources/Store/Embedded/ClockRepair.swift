import GRDB
import Idempotency

/// The correction of times that were written while the clock was ahead.
enum ClockRepair {
  /// Moves back all times of the records that were written far ahead of `now`. A record that has only an end (a
  /// released record, a tombstone, a fence) is unchanged, and is thus kept longer.
  ///
  /// Reads every record, and is therefore done only after a clock was wrong.
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
