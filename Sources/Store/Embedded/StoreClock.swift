import GRDB
import Idempotency
import Platform
import Wire

/// The embedded store's time: the wall clock at the opening of the store, continued by the boot-time clock.
///
/// Setting the wall clock while the process runs has no effect: a step back would revive leases, and a step forward
/// would end those of live owners. A start reads the wall clock again, since no owner outlives the process, but never
/// begins before the latest time in the file, unless the operator vouches for the wall clock.
///
/// A wall clock that differs from the file by more than `bound` is not believed at once: one start two days ahead would
/// forget yesterday's keys. Until the doubt is settled there are two times. Records are written by the later one and
/// expire by the earlier one, so that nothing is forgotten too soon, whichever is right.
struct StoreClock: Sendable {
  /// The largest difference that counts as a short stop, or as a clock that is slightly off.
  static let bound = Milliseconds.seconds(3600)
  /// The time after which a wall clock that has run on undisturbed is believed.
  static let proof = Milliseconds.seconds(24 * 3600)

  /// A difference between two times, either of which may be the right one.
  struct Doubt: Equatable, Sendable {
    /// The later time minus the earlier one.
    let lead: Milliseconds
    /// Whether the later time was the wall clock's at the start; otherwise it was the file's.
    let wallIsAhead: Bool
  }

  /// The event that ends a doubt, or a step of the wall clock while there is none.
  enum Finding: Equatable, Sendable {
    case laterIsRight
    /// Times that were written by the later clock must be moved back by the lead.
    case earlierIsRight
    /// The wall clock was set while the process runs, by the given amount; negative for a step back.
    case stepped(Milliseconds)
  }

  private(set) var doubt: Doubt?
  /// The amount by which times far ahead of `now` must be moved back before anything else is done, because they were
  /// written by a clock that was ahead; `nil` if there are none.
  let excess: Milliseconds?
  private var start: StoreInstant
  private let startedAt: BootInstant
  private var isStepKnown = false

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
  ) {
    startedAt = boot
    let known = history.known
    if isWallTrusted || known.milliseconds == 0 {
      start = wall
    } else if wall - known > Self.bound {
      start = wall
      doubt = Doubt(lead: wall - known, wallIsAhead: true)
    } else if known - wall > Self.bound {
      start = known
      doubt = Doubt(lead: known - wall, wallIsAhead: false)
    } else {
      start = max(history.latest, wall)
    }
    let ahead = max(history.high, history.latest) - start
    excess = ahead > Self.bound ? ahead : nil
  }

  /// Returns the time by which records are written and leases end.
  func now(boot: BootInstant = .now) -> StoreInstant { start + (boot - startedAt) }

  /// Returns the time by which records expire, which is never later than `now`.
  func expiry(boot: BootInstant = .now) -> StoreInstant {
    now(boot: boot) - (doubt?.lead ?? 0)
  }

  /// Compares the wall clock with the store's time. Returns `nil` if there is nothing to do. Called once a second.
  mutating func finding(wall: StoreInstant = Self.wall(), boot: BootInstant = .now) -> Finding? {
    let offset = wall - now(boot: boot)
    guard let doubt else { return step(offset) }
    let (toLater, toEarlier) = (offset.magnitude, (wall - expiry(boot: boot)).magnitude)
    let hasProved = boot - startedAt >= Self.proof
    if toLater <= Self.bound, toLater <= toEarlier {
      return !doubt.wallIsAhead || hasProved ? .laterIsRight : nil
    }
    guard toEarlier <= Self.bound else { return nil }
    return doubt.wallIsAhead || hasProved ? .earlierIsRight : nil
  }

  private mutating func step(_ offset: Milliseconds) -> Finding? {
    let isLarge = offset.magnitude > Self.bound
    defer { isStepKnown = isLarge }
    return isLarge && !isStepKnown ? .stepped(offset) : nil
  }

  /// Ends the doubt, after a finding was acted on.
  mutating func settle(_ finding: Finding) {
    invariant(doubt != nil, "a doubt about the clock ends that there was not")
    if finding == .earlierIsRight { start = start - (doubt?.lead ?? 0) }
    doubt = nil
  }

  static func wall() -> StoreInstant { StoreInstant(milliseconds: WallClock.milliseconds()) }
}

/// The times in a store's file.
struct ClockHistory: Equatable, Sendable {
  /// The latest certain time; 0 in a new file.
  var latest: StoreInstant
  /// The latest time that was written while a wall clock ahead of the file was in doubt; 0 if there is none.
  var high = StoreInstant(milliseconds: 0)
  /// The present time by the machine's uptime since the file was written; `nil` if the machine was restarted since.
  var counted: StoreInstant?

  /// The earliest possible present time.
  var known: StoreInstant {
    guard let counted, counted > latest else { return latest }
    return counted
  }
}

extension StoreInstant {
  static func - (instant: StoreInstant, span: Milliseconds) -> StoreInstant {
    instant + Milliseconds(-span.count)
  }
}

extension Milliseconds {
  fileprivate var magnitude: Milliseconds { Milliseconds(count < 0 ? -max(count, -.max) : count) }
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
