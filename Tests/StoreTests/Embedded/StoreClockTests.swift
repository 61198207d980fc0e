import Foundation
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
    wall: StoreInstant, latest: StoreInstant = latest, high: StoreInstant? = nil
  ) -> StoreClock {
    var history = ClockHistory(latest: latest)
    if let high { history.high = high }
    return StoreClock(history: history, wall: wall, boot: Self.boot)
  }

  private static func back(_ span: Milliseconds) -> Milliseconds { Milliseconds(-span.count) }

  @Test func `time advances with the boot-time clock`() {
    let clock = clock(wall: StoreInstant(milliseconds: 1000), latest: StoreInstant(milliseconds: 0))
    #expect(clock.now(boot: Self.boot) == StoreInstant(milliseconds: 1000))
    #expect(clock.now(boot: Self.boot + 250) == StoreInstant(milliseconds: 1250))
  }

  @Test func `a new file has no time that the wall clock could be ahead of`() {
    let clock = clock(wall: Self.latest, latest: StoreInstant(milliseconds: 0))
    #expect(clock.now(boot: Self.boot) == Self.latest)
    #expect(clock.delay == nil && clock.excess == nil)
  }

  @Test func `within an hour of the file, time starts at the later of the two`() {
    for lead in [Self.hour, 8000, 0, Self.back(8000), Self.back(Self.hour)] {
      let clock = clock(wall: Self.latest + lead)
      #expect(clock.now(boot: Self.boot) == Self.latest + max(lead, 0))
      #expect(clock.delay == nil && clock.excess == nil)
    }
  }

  @Test func `a wall clock more than an hour ahead of the file starts there, and moves all ends by its lead`()
  {
    for lead in [Self.hour + 1, Self.day] {
      let clock = clock(wall: Self.latest + lead)
      #expect(clock.now(boot: Self.boot + 1) == Self.latest + lead + 1)
      #expect(clock.delay == lead && clock.excess == nil)
    }
  }

  @Test func `a wall clock more than an hour behind the file sets its time back, and moves no end`() {
    for lag in [Self.hour + 1, Self.day] {
      let clock = clock(wall: Self.latest + Self.back(lag))
      #expect(clock.now(boot: Self.boot + 1) == Self.latest + Self.back(lag) + 1)
      #expect(clock.delay == nil && clock.excess == lag)
    }
  }

  @Test func `times that an earlier version wrote by a clock in doubt count as written ahead`() {
    let right = clock(wall: Self.latest + 5000, high: Self.latest + Self.day)
    #expect(right.delay == nil && right.excess == Self.day - 5000)
    let ahead = clock(wall: Self.latest + Self.day, high: Self.latest + Self.day)
    #expect(ahead.delay == Self.day && ahead.excess == Self.day)
  }

  @Test func `a step of the clock during the process changes nothing, and is known`() {
    let clock = clock(wall: Self.latest)
    #expect(clock.lead(of: Self.latest + Self.day, boot: Self.boot) == Self.day)
    #expect(clock.lead(of: Self.latest + 5000, boot: Self.boot) == nil)
    #expect(clock.now(boot: Self.boot) == Self.latest)
  }
}

/// A start of the embedded store on a file whose last change is far from the machine's time.
struct StoreClockStartTests {
  private static let logger = Logger(label: "test")
  private static let twoDays = Milliseconds.seconds(48 * 3600)
  private static let ended = "Semel was stopped for so long, or the clock is wrong"
  private static let behind = "it is wrong now, or was then"
  /// All ends of a record, in one order; null for those that it does not have.
  private static let ends = """
    SELECT kept_until, sweep_at, expires_at, CASE WHEN state IN (1, 2) THEN at END, nullif(flags >> 8, 0)
    FROM record ORDER BY id
    """
  /// The times of a record that say when something was.
  private static let past = """
    SELECT group_concat(hex(id) || ifnull(first_seen, '') || CASE state WHEN 4 THEN at ELSE '' END)
    FROM (SELECT * FROM record ORDER BY id)
    """

  /// Runs a test on the path of a file in a directory of its own.
  private func inDirectory(_ body: (String) async throws -> Void) async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    try await body(directory.file("semel.db"))
  }

  @discardableResult
  private func edit<T>(_ path: String, _ body: (Database) throws -> T) throws -> T {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.write(body)
  }

  /// Moves all times of the file, and the one that is noted beside it.
  private func shift(_ path: String, by span: Milliseconds, clock column: String = "latest") throws {
    let progress = try edit(path) { database in
      try database.execute(
        sql: """
          UPDATE record SET at = at + ?1, first_seen = first_seen + ?1, expires_at = expires_at + ?1,
            kept_until = kept_until + ?1, sweep_at = sweep_at + ?1,
            flags = CASE WHEN flags >> 8 > 0 THEN flags + (?1 << 8) ELSE flags END
          """, arguments: [span.count])
      try database.execute(sql: "UPDATE clock SET \(column) = latest + ?", arguments: [span.count])
      return try FileProgress(in: database, latest: try ClockHistory(database).latest)
    }
    let note = LockNote.reached(progress)
    try Data(note.text(owner: 1).utf8).write(to: URL(fileURLWithPath: path + ".lock"))
  }

  private func ends(_ path: String) throws -> [[Int64?]] {
    try edit(path) { try Row.fetchAll($0, sql: Self.ends).map { row in (0..<5).map { row[$0] } } }
  }

  /// Opens and closes the store. Returns the amounts of the warnings that contain a text.
  private func start(_ path: String, warning text: String) async throws -> [Int64] {
    let recorder = LogRecorder()
    let store = try EmbeddedStore(
      path: path, requiresDurable: true, logger: Logger(label: "store") { _ in recorder })
    #expect(store.figures.losses == 0)
    await store.close()
    return recorder.entries(at: .warning).filter { $0.message.contains(text) }
      .compactMap { $0.metadata["by_ms"].flatMap { Int64("\($0)") } }
  }

  @Test func `a long stop moves each end of each record by its length, once`() async throws {
    try await inDirectory { path in
      let store = try EmbeddedStore(path: path, logger: Self.logger)
      _ = try await store.completed()
      _ = try await store.granted(Samples.request())
      let lost = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(lost, because: nil) == .done)
      let released = try await store.granted(Samples.request())
      #expect(try await store.release(released, .remembered) == .done)
      // One fence stands alone, the other one is a part of the record that followed.
      for isFollowed in [false, true] {
        let forgotten = try await store.completed()
        #expect(try await store.forget(forgotten.id, fence: .seconds(600)))
        if isFollowed { #expect(try await store.granted(Samples.request(forgotten.id)).attempt == 2) }
      }
      await store.close()
      try shift(path, by: Milliseconds(-Self.twoDays.count))
      let (before, past) = (try ends(path), try edit(path) { try String.fetchOne($0, sql: Self.past) })
      #expect(before.count == 6 && before.contains { $0[4] != nil } && before.contains { $0[2] != nil })

      let delay = try #require(try await start(path, warning: Self.ended).first)
      #expect(delay >= Self.twoDays.count && delay < Self.twoDays.count + 600_000)
      let moved = before.map { record in record.map { end in end.map { $0 + delay } } }
      #expect(try ends(path) == moved)
      #expect(try edit(path) { try String.fetchOne($0, sql: Self.past) } == past)
      #expect(try await start(path, warning: "").isEmpty)
      #expect(try ends(path) == moved)
    }
  }

  @Test func `a record that a clock far behind has kept stays once the clock is right`() async throws {
    try await inDirectory { path in
      let store = try EmbeddedStore(path: path, logger: Self.logger)
      let claim = try await store.completed()
      _ = try await store.granted(Samples.request())
      await store.close()
      let before = try ends(path)
      // The file of a process that ran by a clock two days behind, and wrote nothing but its time.
      let latest = try edit(path) { database in
        try database.execute(sql: "UPDATE clock SET latest = latest - ?", arguments: [Self.twoDays.count])
        return try Int64.fetchOne(database, sql: "SELECT latest FROM clock") ?? 0
      }
      let note = LockNote.reached(FileProgress(start: 1, latest: latest))
      try Data(note.text(owner: 1).utf8).write(to: URL(fileURLWithPath: path + ".lock"))
      #expect(try await start(path, warning: Self.ended).count == 1)
      for (old, new) in zip(before.joined(), try ends(path).joined()) {
        let span = (new ?? 0) - (old ?? 0)
        #expect(span >= 0 && span < 3_600_000)
      }
      let last = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      #expect(try await last.find(claim.id).completedRecord != nil)
      await last.close()
    }
  }

  @Test func `a record near its end survives a long stop, and expires at its moved end`() async throws {
    try await inDirectory { path in
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let (near, nearer) = (try await first.completed(), try await first.completed())
      await first.close()
      try edit(path) { database in
        for (claim, left) in [(near, 60_000), (nearer, 1)] {
          try database.execute(
            sql: """
              UPDATE record SET expires_at = (SELECT latest FROM clock) + ?1,
                sweep_at = (SELECT latest FROM clock) + ?1 WHERE id = ?2
              """, arguments: [left, Data((0..<32).map { claim.id.digest[$0] })])
        }
      }
      try shift(path, by: Milliseconds(-Self.twoDays.count))
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      try await second.until(nearer.id) { $0.name == .expired }
      let record = try #require(try await second.find(near.id).completedRecord)
      #expect(record.remaining > 0 && record.remaining < .seconds(60))
      #expect(try await second.claim(Samples.again(nearer)).taken == .expired)
      await second.close()
    }
  }

  @Test(arguments: [false, true])
  func `a file that was written two days ahead keeps its outcomes, and no lease outlasts its owner`(
    isOfEarlierVersion: Bool
  ) async throws {
    try await inDirectory { path in
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let (completed, held) = (try await first.completed(), try await first.granted(Samples.request()))
      await first.close()
      // An earlier version that was in doubt left the right time as the latest one.
      try shift(path, by: Self.twoDays, clock: isOfEarlierVersion ? "high" : "latest")
      let recorder = LogRecorder()
      let second = try EmbeddedStore(
        path: path, requiresDurable: true, logger: Logger(label: "store") { _ in recorder })
      #expect(second.figures.losses == 0)
      #expect(recorder.messages(at: .warning).count { $0.contains(Self.behind) } == 1)
      let record = try #require(try await second.find(completed.id).completedRecord)
      #expect(record.remaining > Self.twoDays)
      // Its lease, of less than a minute, ends when it would have ended.
      let standing = try await second.find(held.id)
      guard case .inFlight(let left, _) = standing else { throw Unexpected(what: "\(standing)") }
      #expect(left <= held.lease)
      let next = try await second.granted(Samples.request())
      #expect(next.firstSeen < held.firstSeen + StoreClock.bound)
      await second.close()
      #expect(try await start(path, warning: "").isEmpty)
    }
  }

  @Test func `a start that dies while it sets the time back leaves no loss to be found`() async throws {
    try await inDirectory { path in
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let claim = try await first.completed()
      await first.close()
      try shift(path, by: Self.twoDays)
      let refusal = "CREATE TRIGGER refusal BEFORE UPDATE ON clock BEGIN SELECT RAISE(ABORT, 'refused'); END"
      try edit(path) { try $0.execute(sql: refusal) }
      #expect(throws: EmbeddedStoreError.self) {
        _ = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      }
      try edit(path) { try $0.execute(sql: "DROP TRIGGER refusal") }
      // The note as it is before the commit, and behind it until the start goes on.
      let note = try String(contentsOfFile: path + ".lock", encoding: .utf8)
      #expect(try await start(path, warning: Self.behind).count == 1)
      try Data(note.utf8).write(to: URL(fileURLWithPath: path + ".lock"))
      let last = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      #expect(last.figures.losses == 0)
      #expect(try await last.find(claim.id).completedRecord != nil)
      await last.close()
    }
  }

  @Test func `a copy that was written ahead is noticed after the clock was set right`() async throws {
    try await inDirectory { path in
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      _ = try await first.completed()
      await first.close()
      try shift(path, by: Self.twoDays)
      let copy = try Data(contentsOf: URL(fileURLWithPath: path))
      let second = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      let before = try await second.completed()
      await second.close()
      try copy.write(to: URL(fileURLWithPath: path))
      #expect(throws: EmbeddedStoreError.loss(path: StoreFile.resolved(path), .behind)) {
        _ = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      }
      let third = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(third.figures.losses == 1)
      #expect(try await third.granted(Samples.again(before)).attempt > before.attempt)
      await third.close()
    }
  }

  @Test func `a start that sets the time back and is killed makes nothing look older or lost`() async throws {
    try await inDirectory { path in
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let before = try await first.completed()
      await first.close()
      try shift(path, by: Self.twoDays)
      // A start up to its commit: the file is two days behind the time that is noted.
      let lock = try FileLock(of: path, refusesLoss: true)
      let opened = try StoreFile.opened(path, refusesLoss: true, under: lock)
      #expect(opened.loss == nil)
      try opened.queue.close()
      lock.release()
      let note = LockNote(try String(contentsOfFile: path + ".lock", encoding: .utf8))
      #expect(try #require(note.progress).latest > opened.progress.latest + Self.twoDays.count - 600_000)
      for _ in 0..<2 {
        let store = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
        #expect(store.figures.losses == 0)
        #expect(try await store.find(before.id).name == .completed)
        // A number above 1000000000 means a loss.
        #expect(try await store.granted(Samples.request()).attempt == 1)
        await store.close()
      }
    }
  }
}
