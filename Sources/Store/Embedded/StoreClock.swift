import GRDB
import Idempotency
import Platform

/// The embedded store's one time: the later of the last written time and the wall clock when the store is opened,
/// continued by the boot-time clock.
///
/// Setting the wall clock while the process runs has no effect: a step back would revive leases, and a step forward
/// would end those of live owners. A start reads the wall clock again, since no owner outlives the process. A wall clock
/// that differs from the file by more than `bound` is refused: one start two days ahead would forget yesterday's keys.
struct StoreClock: Sendable {
  /// The largest difference that counts as a short stop, or as a clock that is slightly off. A clock that was set to
  /// another time zone is beyond it.
  static let bound = Milliseconds.seconds(3600)

  /// The refusal of a wall clock that contradicts the file.
  struct Apart: Error, Equatable {
    /// The wall clock's time minus the file's.
    let lead: Milliseconds
  }

  /// The amount by which the file was written ahead of this time; `nil` if that is within the bound.
  let excess: Milliseconds?
  private let start: StoreInstant
  private let startedAt: BootInstant

  /// Creates the clock of a store.
  ///
  /// - Parameters:
  ///   - history: The times in the file.
  ///   - isWallTrusted: Whether the operator vouches for the wall clock.
  ///   - wall: The wall clock's time.
  ///   - boot: The boot-time clock's time.
  init(
    history: ClockHistory, isWallTrusted: Bool = false, wall: StoreInstant = Self.wall(),
    boot: BootInstant = .now
  ) throws(Apart) {
    let lead = wall - history.known
    let isApart = history.known.milliseconds > 0 && Self.isApart(lead)
    guard isWallTrusted || !isApart else { throw Apart(lead: lead) }
    startedAt = boot
    // Only the operator's word leads back, and only over a clock that was wrong.
    start = isApart ? wall : max(history.latest, wall)
    let ahead = max(history.high, history.latest) - start
    excess = ahead > Self.bound ? ahead : nil
  }

  /// Returns the time by which records are written and expire, and leases end.
  func now(boot: BootInstant = .now) -> StoreInstant { start + (boot - startedAt) }

  /// Returns the wall clock's time minus the store's if a start would refuse it; otherwise `nil`.
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
  /// The time of the last change; 0 in a new file.
  var latest: StoreInstant
  /// The latest time that an earlier version wrote by a wall clock that it did not believe; 0 if there is none.
  var high = StoreInstant(milliseconds: 0)
  /// The present time by the machine's uptime since the file was written; `nil` if the machine was restarted since.
  var counted: StoreInstant?

  /// The earliest possible present time.
  var known: StoreInstant {
    guard let counted, counted > latest else { return latest }
    return counted
  }

  /// Reads the times of a file.
  init(_ database: Database, uptime: MachineUptime? = .read()) throws {
    latest = StoreInstant(milliseconds: 0)
    guard let row = try Row.fetchOne(database, sql: "SELECT latest, high, machine, counted_from FROM clock")
    else { return }
    latest = StoreInstant(milliseconds: row[0])
    high = StoreInstant(milliseconds: row[1])
    if let uptime, row[2] as String? == uptime.startID, let from = row[3] as Int64? {
      counted = StoreInstant(milliseconds: from) + uptime.span
    }
  }

  init(latest: StoreInstant) { self.latest = latest }

  /// Takes the times of the open records back with the clock, so that no lease outlasts its owner by hours. All other
  /// records keep their ends, and are thus kept longer.
  ///
  /// Reads every record, and is therefore done only after a clock was wrong.
  static func takeBack(_ database: Database, by excess: Milliseconds, to now: StoreInstant) throws {
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

/// The time since the machine was started, with the identity of that start: evidence of how long Semel was stopped that
/// does not depend on the wall clock.
struct MachineUptime {
  /// The kernel's random identifier of this start of the machine.
  let startID: String
  let span: Milliseconds

  init(startID: String, span: Milliseconds) {
    self.startID = startID
    self.span = span
  }

  /// Reads the uptime; `nil` if the system does not provide it.
  static func read() -> MachineUptime? {
    guard
      let startID = SystemFile.text(of: "/proc/sys/kernel/random/boot_id")?.split(separator: "\n").first,
      let seconds = SystemFile.text(of: "/proc/uptime")?.split(separator: " ").first.flatMap({ Double($0) })
    else { return nil }
    return MachineUptime(
      startID: String(startID), span: Milliseconds(Int64(max(0, min(seconds * 1000, 1e15)))))
  }
}
