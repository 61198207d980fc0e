import CSimulation

/// A machine of the world: its clocks, each of which runs in its own way, and whether it is alive.
final class Machine: @unchecked Sendable {
  static let firstWall: Int64 = 1_790_000_000_000_000_000

  let schedule: Schedule
  let name: String
  private let uptime: Int64
  /// The error of its clocks, in parts of a million.
  private let drift: Int64
  /// The error of the wall clock, which anybody may set.
  var wallError = Span.zero
  private(set) var isDead = false
  /// The time until which it stands still.
  private(set) var frozenUntil = Moment.start
  private var thaws: [() -> Void] = []

  init(_ name: String, on schedule: Schedule, _ dice: inout Dice) {
    self.name = name
    self.schedule = schedule
    uptime = Int64(dice.between(1e3, 1e7) * 1e9)
    drift = Int64(dice.between(-300, 300))
    wallError = dice.span(-2, 2)
  }

  var isFrozen: Bool { schedule.now < frozenUntil }

  /// The time by the machine's monotonic clock.
  func monotonic(at moment: Moment) -> Int64 {
    uptime + moment.nanoseconds + moment.nanoseconds / 1_000_000 * drift
  }

  /// The first moment at which its monotonic clock shows a time.
  func moment(ofMonotonic time: Int64) -> Moment {
    let own = time - uptime
    var moment = Moment(nanoseconds: own - own / 1_000_000 * drift)
    while monotonic(at: moment) < time { moment.nanoseconds += 1 + abs(drift) }
    return moment
  }

  func wall(at moment: Moment) -> Int64 {
    Self.firstWall + moment.nanoseconds + wallError.nanoseconds
  }

  /// Lets the thread see this machine's clocks.
  func showClocks() {
    let now = schedule.now
    let monotonic = monotonic(at: now)
    simulation_set_clocks(monotonic, monotonic + 1_000_000_000, wall(at: now))
  }

  func freeze(for span: Span) {
    frozenUntil = max(frozenUntil, schedule.now + span)
    schedule.note(7)
  }

  func kill() { isDead = true }
}
