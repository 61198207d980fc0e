import Idempotency
import Loop

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The embedded store's time: the machine's wall clock as it stood when the store was opened, carried on by
/// the boot-time clock.
///
/// Setting the wall clock while the process lives changes nothing: a step back would revive leases, a step
/// forward would end those of live owners. A start takes the wall clock anew, since no owner outlives the
/// process, but never a time before the latest that the file tells of.
///
/// A wall clock that differs from the file by more than `bound` is not believed at once: one start two days
/// ahead would forget yesterday's keys. Until that is settled there are two times. Records are written by the
/// later one, and expire by the earlier one, so that nothing is forgotten too soon whichever is right.
struct StoreClock: Sendable {
  /// The largest difference that is taken for a short stop, or for a clock that is a little off.
  static let bound = Milliseconds.seconds(3600)
  /// The time after which a wall clock that has run on undisturbed is believed.
  static let proof = Milliseconds.seconds(24 * 3600)

  /// Two times, of which it is not known yet which is right.
  struct Doubt: Equatable, Sendable {
    /// The later time minus the earlier one.
    let lead: Milliseconds
    /// Whether the later one was the wall clock's at the start; else it was the file's.
    let wallIsAhead: Bool
  }

  /// The event that ends a doubt, or the wall clock's step without one.
  enum Finding: Equatable, Sendable {
    case laterIsRight
    /// Times that were written by the later one are to be moved back by the lead.
    case earlierIsRight
    /// The wall clock was set while the process lives, by so much (negative: back).
    case stepped(Milliseconds)
  }

  private(set) var doubt: Doubt?
  /// The span by which times far ahead of `now` are to be moved back before anything else is done: they were
  /// written by a clock that was ahead. `nil` where there are none.
  let excess: Milliseconds?
  private var start: StoreInstant
  private let startedAt: BootInstant
  private var isStepKnown = false

  /// - Parameters:
  ///   - history: what the file tells.
  ///   - isWallTrusted: whether the operator vouches for the wall clock.
  init(
    history: ClockHistory, isWallTrusted: Bool = false, wall: StoreInstant = Self.wall(),
    boot: BootInstant = Self.boot()
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

  /// The time by which records are written and leases end.
  func now(boot: BootInstant = Self.boot()) -> StoreInstant { start + (boot - startedAt) }

  /// The time by which records expire: never later than `now`.
  func expiry(boot: BootInstant = Self.boot()) -> StoreInstant {
    now(boot: boot) - (doubt?.lead ?? 0)
  }

  /// What the wall clock shows by now. Asked about once a second.
  mutating func finding(wall: StoreInstant = Self.wall(), boot: BootInstant = Self.boot()) -> Finding? {
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

  /// Ends the doubt by a finding that was acted on.
  mutating func settle(_ finding: Finding) {
    if finding == .earlierIsRight { start = start - (doubt?.lead ?? 0) }
    doubt = nil
  }

  static func boot() -> BootInstant { BootInstant(nanoseconds: bootTimeNanoseconds()) }

  static func wall() -> StoreInstant {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return StoreInstant(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
  }
}

/// The times that a store's file holds.
struct ClockHistory: Equatable, Sendable {
  /// The latest time that is certain; 0 in a new file.
  var latest: StoreInstant
  /// The latest time that was written while a wall clock ahead of the file was in doubt; 0 where there is none.
  var high = StoreInstant(milliseconds: 0)
  /// The time now as the machine has counted it since the file was written; `nil` where it was started anew since.
  var counted: StoreInstant?

  /// The earliest time that it can be.
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
