import Idempotency
import Testing

@testable import Store

/// The embedded store's time.
struct StoreClockTests {
  private static let boot = BootInstant(nanoseconds: 5_000_000_000)
  private static let hour = Milliseconds.seconds(3600)
  private static let day = Milliseconds.seconds(24 * 3600)
  /// The latest time that the file tells of.
  private static let latest = StoreInstant(milliseconds: 1_000_000_000_000)

  private func clock(
    wall: StoreInstant, latest: StoreInstant = latest, high: StoreInstant? = nil,
    counted: StoreInstant? = nil, isTrusted: Bool = false
  ) -> StoreClock {
    var history = ClockHistory(latest: latest)
    if let high { history.high = high }
    history.counted = counted
    return StoreClock(history: history, isWallTrusted: isTrusted, wall: wall, boot: Self.boot)
  }

  @Test func `time advances with the boot-time clock`() {
    let clock = clock(wall: StoreInstant(milliseconds: 1000), latest: StoreInstant(milliseconds: 0))
    #expect(clock.now(boot: Self.boot) == StoreInstant(milliseconds: 1000))
    #expect(clock.now(boot: Self.boot + 250) == StoreInstant(milliseconds: 1250))
    #expect(clock.doubt == nil)
  }

  @Test func `a wall clock slightly behind the file starts at the file's time`() {
    let clock = clock(wall: Self.latest - 8000)
    #expect(clock.now(boot: Self.boot + 1) == Self.latest + 1)
    #expect(clock.doubt == nil)
  }

  @Test func `a wall clock far ahead is used for writing, and nothing expires by it`() {
    let clock = clock(wall: Self.latest + Self.day)
    #expect(clock.doubt == .init(lead: Self.day, wallIsAhead: true))
    #expect(clock.now(boot: Self.boot + 5) == Self.latest + Self.day + 5)
    #expect(clock.expiry(boot: Self.boot + 5) == Self.latest + 5)
  }

  @Test func `a long stop on a running machine raises no doubt`() {
    let wall = Self.latest + Self.day
    #expect(clock(wall: wall, counted: wall - 20).doubt == nil)
    // And what it counted shows that the clock is wrong, however long the stop was.
    let wrong = clock(wall: wall + Self.day, counted: wall)
    #expect(wrong.expiry(boot: Self.boot) == wall)
  }

  @Test func `a wall clock that is set right is believed at once`() {
    var ahead = clock(wall: Self.latest + Self.day)
    #expect(ahead.finding(wall: Self.latest + Self.day + 1000, boot: Self.boot + 1000) == nil)
    #expect(ahead.finding(wall: Self.latest + 900, boot: Self.boot + 2000) == .earlierIsRight)
    ahead.settle(.earlierIsRight)
    #expect(ahead.now(boot: Self.boot + 2000) == Self.latest + 2000)
    var behind = clock(wall: Self.latest - Self.day)
    #expect(behind.now(boot: Self.boot) == Self.latest)
    #expect(behind.expiry(boot: Self.boot) == Self.latest - Self.day)
    #expect(behind.finding(wall: Self.latest + 900, boot: Self.boot + 2000) == .laterIsRight)
    behind.settle(.laterIsRight)
    #expect(behind.expiry(boot: Self.boot) == Self.latest)
  }

  @Test func `a wall clock that has run on for a day is believed`() {
    var ahead = clock(wall: Self.latest + Self.day)
    let later = Self.latest + Self.day + Self.day
    #expect(ahead.finding(wall: later, boot: Self.boot + Self.day) == .laterIsRight)
    var behind = clock(wall: Self.latest - Self.day)
    #expect(behind.finding(wall: Self.latest, boot: Self.boot + Self.day) == .earlierIsRight)
  }

  @Test func `the operator's trust_clock ends a doubt, and returns the span to move back`() {
    #expect(clock(wall: Self.latest + Self.day, isTrusted: true).doubt == nil)
    #expect(clock(wall: Self.latest + Self.day, isTrusted: true).excess == nil)
    let behind = clock(wall: Self.latest - Self.day, isTrusted: true)
    #expect(behind.now(boot: Self.boot) == Self.latest - Self.day)
    #expect(behind.excess == Self.day)
  }

  @Test func `after a start with a clock ahead, its records are moved back`() {
    let clock = clock(wall: Self.latest + 5000, high: Self.latest + Self.day)
    #expect(clock.doubt == nil)
    #expect(clock.excess == Self.day - 5000)
  }

  @Test func `a step of the clock during the process is reported once and changes nothing`() {
    var clock = clock(wall: Self.latest)
    #expect(clock.finding(wall: Self.latest + Self.day, boot: Self.boot) == .stepped(Self.day))
    #expect(clock.finding(wall: Self.latest + Self.day, boot: Self.boot) == nil)
    #expect(clock.now(boot: Self.boot) == Self.latest)
  }

  @Test func `records that have expired by the later time alone are held`() {
    let now = Self.latest + Self.day
    let hold = ExpiryHold(now: now, lead: Self.day)
    let completion = Samples.completion(retention: .seconds(60), remember: .seconds(90))
    func entry(at: StoreInstant) -> StoredEntry {
      let request = Samples.request()
      let step = RecordRules.claim(nil, request, now: at, requestedAt: Self.boot)
      guard case .put(let claimed) = step.change, case .granted(let claim) = step.outcome,
        case .put(let completed) = RecordRules.complete(claimed, claim, with: completion, now: at).change
      else { preconditionFailure("no record") }
      return completed
    }
    let held = entry(at: Self.latest - 1000)
    #expect(held.standing(now: now) == .absent)
    guard case .completed(let record) = held.held(by: hold).standing(now: now) else {
      Issue.record("not held")
      return
    }
    #expect(record.remaining == .seconds(59))
    #expect(entry(at: Self.latest - .seconds(90)).held(by: hold).standing(now: now) == .absent)
    let fresh = entry(at: now)
    #expect(fresh.held(by: hold) == fresh)
  }
}
