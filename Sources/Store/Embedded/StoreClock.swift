import GRDB
import Idempotency
import Platform

/// The embedded store's one time: the wall clock when the store is opened, continued by the boot-time clock.
///
/// Setting the wall clock while the process runs has no effect: a step back would revive leases, and a step forward end
/// those of live owners. A start reads it again. Records keep the rest of their lives over a start with a wall clock
/// far ahead of the file, be that the end of a long stop or a wrong clock.
struct StoreClock: Sendable {
  /// The largest difference that counts as a short stop, or as a clock that is slightly off.
  static let bound = Milliseconds.seconds(3600)

  /// The amount by which the wall clock is ahead of the file, and by which the ends of all records move.
  let delay: Milliseconds?
  /// The amount by which the file was written ahead of this time.
  let excess: Milliseconds?
  private let start: StoreInstant
  private let startedAt: BootInstant

  init(history: ClockHistory, wall: StoreInstant = Self.wall(), boot: BootInstant = .now) {
    let lead = wall - history.latest
    startedAt = boot
    start = Self.isApart(lead) ? wall : max(history.latest, wall)
    let delay: Milliseconds = history.latest.milliseconds > 0 && lead > Self.bound ? lead : 0
    self.delay = delay > 0 ? delay : nil
    let ahead = max(history.high, history.latest) + delay - start
    excess = ahead > Self.bound ? ahead : nil
  }

  /// Returns the time by which records and leases end.
  func now(boot: BootInstant = .now) -> StoreInstant { start + (boot - startedAt) }

  func lead(of wall: StoreInstant = Self.wall(), boot: BootInstant = .now) -> Milliseconds? {
    let lead = wall - now(boot: boot)
    return Self.isApart(lead) ? lead : nil
  }

  private static func isApart(_ lead: Milliseconds) -> Bool {
    lead > bound || lead.count < -bound.count
  }

  static func wall() -> StoreInstant { StoreInstant(milliseconds: WallClock.milliseconds()) }
}

/// The times in a store's file.
struct ClockHistory: Equatable, Sendable {
  var latest: StoreInstant
  /// The latest time that an earlier version wrote by a wall clock that it did not believe.
  var high = StoreInstant(milliseconds: 0)

  init(_ database: Database) throws {
    latest = StoreInstant(milliseconds: 0)
    guard let row = try Row.fetchOne(database, sql: "SELECT latest, high FROM clock") else { return }
    latest = StoreInstant(milliseconds: row[0])
    high = StoreInstant(milliseconds: row[1])
  }

  init(latest: StoreInstant) { self.latest = latest }

  /// Begins a clock in the file, inside the transaction that opens it. Earlier versions find no uptime of the machine.
  static func begin(_ clock: StoreClock, at now: StoreInstant, in database: Database) throws {
    if let delay = clock.delay { try postpone(database, by: delay, at: now) }
    if let excess = clock.excess { try takeBack(database, by: excess, to: now) }
    try database.execute(
      sql: "UPDATE clock SET latest = ?, high = 0, machine = NULL, counted_from = NULL",
      arguments: [now.milliseconds])
  }

  /// Moves the ends of all records, leases and fences, and the losses from which unknown outcomes are kept. A record
  /// moves by its age at most: a younger one than the file's time has kept its end. Reads every record, once.
  private static func postpone(
    _ database: Database, by delay: Milliseconds, at now: StoreInstant
  ) throws {
    let span = "max(0, min(:delay, :now - coalesce(first_seen, 0)))"
    try database.execute(
      sql: """
        UPDATE record SET kept_until = kept_until + \(span), sweep_at = sweep_at + \(span),
          expires_at = expires_at + \(span),
          at = CASE WHEN state IN (1, 2) THEN at + \(span) ELSE at END,
          flags = CASE WHEN flags >> :shift > 0 THEN flags + (:delay << :shift) ELSE flags END
        """,
      arguments: [
        "delay": delay.count, "now": now.milliseconds, "shift": RecordTable.Flag.fenceShift,
      ])
  }

  /// Takes the times of the open records back with the clock, so that no lease outlasts its owner by hours. All other
  /// records keep their ends. Reads every record, once after a clock was wrong.
  private static func takeBack(_ database: Database, by excess: Milliseconds, to now: StoreInstant) throws {
    try database.execute(
      sql: """
        UPDATE record SET at = max(:now, at - :excess), first_seen = min(first_seen, :now)
        WHERE state IN (1, 2) AND at > :now
        """,
      arguments: ["excess": excess.count, "now": now.milliseconds])
  }
}

extension StoreInstant {
  static func - (instant: StoreInstant, span: Milliseconds) -> StoreInstant {
    instant + Milliseconds(-span.count)
  }
}
