import GRDB
import Idempotency
import Logging
import TestSupport
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
  ) throws(StoreClock.Apart) -> StoreClock {
    var history = ClockHistory(latest: latest)
    if let high { history.high = high }
    history.counted = counted
    return try StoreClock(history: history, isWallTrusted: isTrusted, wall: wall, boot: Self.boot)
  }

  private static func back(_ span: Milliseconds) -> Milliseconds { Milliseconds(-span.count) }

  @Test func `time advances with the boot-time clock`() throws {
    let clock = try clock(wall: StoreInstant(milliseconds: 1000), latest: StoreInstant(milliseconds: 0))
    #expect(clock.now(boot: Self.boot) == StoreInstant(milliseconds: 1000))
    #expect(clock.now(boot: Self.boot + 250) == StoreInstant(milliseconds: 1250))
  }

  @Test func `a wall clock slightly behind the file starts at the file's time`() throws {
    let wall = Self.latest - 8000
    for isTrusted in [false, true] {
      #expect(try clock(wall: wall, isTrusted: isTrusted).now(boot: Self.boot + 1) == Self.latest + 1)
    }
  }

  @Test func `a wall clock more than an hour apart from the file is refused`() throws {
    for lead in [Self.hour + 1, Self.day, Self.back(Self.hour + 1), Self.back(Self.day)] {
      #expect(throws: StoreClock.Apart(lead: lead)) { try clock(wall: Self.latest + lead) }
    }
    for lead in [Self.hour, Self.back(Self.hour)] {
      #expect(try clock(wall: Self.latest + lead).now(boot: Self.boot) >= Self.latest)
    }
  }

  @Test func `a long stop on a running machine is no reason to refuse the clock`() throws {
    let wall = Self.latest + Self.day
    #expect(try clock(wall: wall, counted: wall - 20).now(boot: Self.boot) == wall)
    // And what it counted shows that the clock is wrong, however long the stop was.
    #expect(throws: StoreClock.Apart(lead: Self.day)) { try clock(wall: wall + Self.day, counted: wall) }
  }

  @Test
  func
    `the operator's trust_clock takes the wall clock's time, and finds how far the file is ahead`()
    throws
  {
    let ahead = try clock(wall: Self.latest + Self.day, isTrusted: true)
    #expect(ahead.now(boot: Self.boot) == Self.latest + Self.day)
    #expect(ahead.excess == nil)
    let behind = try clock(wall: Self.latest - Self.day, isTrusted: true)
    #expect(behind.now(boot: Self.boot) == Self.latest - Self.day)
    #expect(behind.excess == Self.day)
  }

  @Test func `times that an earlier version wrote by a clock in doubt count as written ahead`() throws {
    let clock = try clock(wall: Self.latest + 5000, high: Self.latest + Self.day)
    #expect(clock.excess == Self.day - 5000)
  }

  @Test func `a step of the clock during the process changes nothing, and is known`() throws {
    let clock = try clock(wall: Self.latest)
    #expect(clock.lead(of: Self.latest + Self.day, boot: Self.boot) == Self.day)
    #expect(clock.lead(of: Self.latest + 5000, boot: Self.boot) == nil)
    #expect(clock.now(boot: Self.boot) == Self.latest)
  }

  @Test(arguments: [false, true])
  func `a file that was written two days ahead is refused, unless the clock is vouched for`(
    isOfEarlierVersion: Bool
  ) async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    let logger = Logger(label: "test")
    let first = try EmbeddedStore(path: path, logger: logger)
    let (completed, held) = (try await first.completed(), try await first.granted(Samples.request()))
    await first.close()
    let span = Milliseconds.seconds(48 * 3600)
    let queue = try DatabaseQueue(path: path)
    try await queue.write { database in
      try database.execute(
        sql: "UPDATE record SET at = at + ?1, first_seen = first_seen + ?1, expires_at = expires_at + ?1, "
          + "kept_until = kept_until + ?1, sweep_at = sweep_at + ?1", arguments: [span.count])
      // An earlier version that was in doubt left the right time as the latest one.
      let column = isOfEarlierVersion ? "high" : "latest"
      try database.execute(sql: "UPDATE clock SET \(column) = latest + ?", arguments: [span.count])
    }
    try queue.close()
    if !isOfEarlierVersion {
      let error = #expect(throws: EmbeddedStoreError.self) { try EmbeddedStore(path: path, logger: logger) }
      guard case .clockApart(_, let lead) = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(lead < Self.back(Self.day))
    }
    let second = try EmbeddedStore(path: path, isWallTrusted: !isOfEarlierVersion, logger: logger)
    #expect(try await second.find(completed.id).name == .completed)
    // Its lease, of less than a minute, ends when it would have ended.
    let standing = try await second.find(held.id)
    guard case .inFlight(let left, _) = standing else { throw Unexpected(what: "\(standing)") }
    #expect(left <= held.lease)
    #expect(try await second.granted(Samples.request()).firstSeen < held.firstSeen + Self.hour)
    await second.close()
    try await EmbeddedStore(path: path, logger: logger).close()
  }
}
