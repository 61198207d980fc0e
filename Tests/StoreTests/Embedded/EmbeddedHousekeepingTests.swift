import Foundation
import GRDB
import Idempotency
import Logging
import Platform
import TestSupport
import Testing

@testable import Store

/// The upkeep of the embedded store's files, also while others touch them.
struct EmbeddedHousekeepingTests {
  private static let logger = Logger(label: "test")

  private func inDirectory(_ body: (String) async throws -> Void) async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    try await body(directory.file("semel.db"))
  }

  @Test func `a command on a locked file gives up in time, and is never run`() async throws {
    try await inDirectory { path in
      let store = try EmbeddedStore(path: path, timeout: 1000, logger: Self.logger)
      let before = try await store.granted(Samples.request())
      let request = Samples.request()
      let other = try Self.stranger(path)
      try Self.run("BEGIN IMMEDIATE", on: other)
      let began = BootInstant.now.nanoseconds
      for _ in 0..<2 {
        let error = await #expect(throws: StoreError.self) { try await store.claim(request) }
        guard case .unavailable = error else { throw Unexpected(what: "\(error as Any)") }
      }
      await #expect(throws: StoreError.self) { try await store.complete(before, with: Samples.completion()) }
      // Far more than three time-outs, on a machine with other work.
      #expect(BootInstant.now.nanoseconds - began < 15_000_000_000)
      try Self.run("ROLLBACK", on: other)
      // A claim that was given up claims nothing once the lock is gone.
      try await store.until(request.id) { _ in true }
      #expect(try await store.find(request.id) == .absent)
      #expect(try await store.granted(Samples.request(request.id)).attempt == 1)
      #expect(try await store.complete(before, with: Samples.completion()).outcome == .done)
      await store.close()
    }
  }

  /// A connection of somebody else's, which may hold a transaction open.
  private static func stranger(_ path: String) throws -> DatabaseQueue {
    var configuration = GRDB.Configuration()
    configuration.allowsUnsafeTransactions = true
    configuration.busyMode = .timeout(10)
    return try DatabaseQueue(path: path, configuration: configuration)
  }

  private static func run(_ sql: String, on queue: DatabaseQueue) throws {
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
  }

  @Test func `a deleted or replaced file refuses the next claim, and all others until it is back`()
    async throws
  {
    for replacement in [false, true] {
      try await inDirectory { path in
        let store = try EmbeddedStore(path: path, logger: Self.logger)
        let claim = try await store.completed()
        #expect(rename(path, path + ".away") == 0)
        if replacement { #expect(FileManager.default.createFile(atPath: path, contents: Data())) }
        let error = await #expect(throws: StoreError.self) { try await store.claim(Samples.request()) }
        guard case .refused(let text) = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(text.contains(replacement ? "was replaced" : "was deleted"))
        let next = await #expect(throws: StoreError.self) { try await store.find(claim.id) }
        guard case .refused = next else { throw Unexpected(what: "\(next as Any)") }
        #expect(!store.figures.isAvailable)
        #expect(rename(path + ".away", path) == 0)
        #expect(try await store.find(claim.id).name == .completed)
        #expect(store.figures.isAvailable)
        await store.close()
      }
    }
  }

  @Test func `a deleted lock file lets nobody else in`() async throws {
    try await inDirectory { path in
      let store = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(unlink(path + ".lock") == 0)
      let error = #expect(throws: EmbeddedStoreError.self) {
        _ = try EmbeddedStore(path: path, logger: Self.logger)
      }
      #expect(error == .inUse(path: StoreFile.resolved(path), owner: "another process"))
      await store.close()
    }
  }

  @Test func `a damaged page of the sweep's index refuses changes, and costs no record`() async throws {
    try await inDirectory { path in
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let kept = try await first.completed()
      let claim = try await first.granted(Samples.request())
      await first.close()
      try Self.damageIndex(of: path)
      let recorder = LogRecorder()
      let second = try EmbeddedStore(path: path, logger: Logger(label: "store") { _ in recorder })
      // Whoever may have sent a request keeps its record, and nobody else runs one.
      let refusals = [
        await #expect(throws: StoreError.self) { try await second.claim(Samples.request()) },
        await #expect(throws: StoreError.self) { try await second.renew(claim) },
      ]
      for error in refusals {
        guard case .unavailable = error else { throw Unexpected(what: "\(error as Any)") }
      }
      #expect(try await second.find(kept.id).name == .completed)
      #expect(try await second.find(claim.id).name == .inFlight)
      #expect(recorder.messages(at: .error).count { $0.contains("a page of the database is damaged") } == 1)
      await second.close()
    }
  }

  @Test func `a damaged page beside a record makes no record unreadable`() async throws {
    try await inDirectory { path in
      let large = Samples.completion(.whole(Samples.response(body: String(repeating: "x", count: 30_000))))
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      for _ in 0..<20 { _ = try await first.completed(with: large) }
      let kept = try await first.completed(with: large)
      let claim = try await first.granted(Samples.request())
      await first.close()
      try Self.damage(path) { database in
        // Rows that nobody needs, whose pages are free from then on; the first of these pages lists the others.
        try database.execute(sql: "DELETE FROM response WHERE number <= 20")
        try database.execute(sql: "DELETE FROM record WHERE response <= 20")
        try database.checkpoint(.truncate)
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        return try file.read(upToCount: 36).map { $0[32..<36].reduce(0) { $0 << 8 | Int($1) } } ?? 0
      }
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      let error = await #expect(throws: StoreError.self) { try await second.complete(claim, with: large) }
      guard case .unavailable = error else { throw Unexpected(what: "\(error as Any)") }
      // The owner goes on trying, and keeps its record meanwhile.
      #expect(try await second.renew(claim) == .done)
      #expect(try await second.find(kept.id).name == .completed)
      await second.close()
    }
  }

  /// Writes noise over the root page of the index.
  private static func damageIndex(of path: String) throws {
    try damage(path) { database in
      try database.checkpoint(.truncate)
      return try Int.fetchOne(
        database, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'record_sweep'") ?? 0
    }
  }

  /// Writes noise over the page whose number `choose` returns.
  private static func damage(_ path: String, _ choose: (Database) throws -> Int) throws {
    let queue = try DatabaseQueue(path: path)
    let page = try queue.writeWithoutTransaction(choose)
    try queue.close()
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.seek(toOffset: UInt64((page - 1) * 4096))
    try file.write(contentsOf: Data(repeating: 0xA7, count: 4096))
    try file.close()
  }

  @Test func `a step of the sweeper ends when its time is over`() async throws {
    try await inDirectory { path in
      let store = try EmbeddedStore(path: path, logger: Self.logger)
      for _ in 0..<5 { _ = try await store.completed() }
      await store.close()
      let queue = try StoreFile.opened(path).queue
      let counts = try await queue.writeWithoutTransaction { database in
        let table = try RecordTable(database)
        let later = StoreClock.wall() + .seconds(3600)
        var left = 2
        let cut = try table.sweep(now: later, limit: 256) {
          left -= 1
          return left > 0
        }
        return [cut, try table.sweep(now: later, limit: 256) { true }]
      }
      #expect(counts == [2, 3])
      try queue.close()
    }
  }

  @Test func `the sweeper lets others through between large responses`() async throws {
    try await inDirectory { path in
      let count = 64
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let large = Samples.response(body: String(repeating: "x", count: 1 << 20))
      for _ in 0..<count { _ = try await first.completed(with: Samples.completion(.whole(large))) }
      await first.close()
      let second = try EmbeddedStore(path: path, timeout: 60_000, logger: Self.logger)
      let other = try Self.stranger(path)
      // All of them are due in the same step, once the first claim waits for its turn.
      try Self.run("BEGIN IMMEDIATE", on: other)
      try Self.run("UPDATE record SET sweep_at = 1", on: other)
      let steps = Watched<Set<Int>>([])
      Self.claim(on: second, until: count, steps)
      try Self.run("COMMIT", on: other)
      let counts = try await steps.until("the end of the sweep", within: .seconds(60)) {
        $0.contains(count) ? $0 : nil
      }
      #expect(counts.subtracting([0, count]).count >= 2, "\(counts)")
      try other.close()
      await second.close()
    }
  }

  /// Claims new records one after another, each as soon as the one before is granted, and notes how many records had
  /// been swept by then, until so many have been.
  private static func claim(on store: EmbeddedStore, until count: Int, _ steps: Watched<Set<Int>>) {
    // Without a loop of its own, the reply comes on the writer's thread, between its steps.
    store.startClaim(Samples.request()) { reply in
      guard case .success(.granted) = reply else { return }
      let swept = store.figures.swept
      steps.withValue { _ = $0.insert(swept) }
      if swept < count { claim(on: store, until: count, steps) }
    }
  }

  @Test func `a sweep that fails is counted, and tried less and less often`() async throws {
    try await inDirectory { path in
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      for _ in 0..<3 { _ = try await first.completed() }
      await first.close()
      let queue = try DatabaseQueue(path: path)
      try await queue.writeWithoutTransaction { database in
        try database.execute(sql: "UPDATE record SET sweep_at = 1, kept_until = 1")
        try database.execute(
          sql: "CREATE TRIGGER hindrance BEFORE DELETE ON record BEGIN SELECT RAISE(ABORT, 'hindered'); END")
      }
      let began = ContinuousClock.now
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      try await until { second.figures.sweepFailures >= 3 }
      // After one second, and after two more.
      #expect(ContinuousClock.now - began >= .milliseconds(2800))
      #expect(second.figures.swept == 0)
      #expect(try await second.granted(Samples.request()).attempt == 1)
      try await queue.writeWithoutTransaction { try $0.execute(sql: "DROP TRIGGER hindrance") }
      try await until { second.figures.swept == 3 }
      try queue.close()
      await second.close()
    }
  }

  @Test func `the pause after failures doubles up to an hour, and ends with a success`() {
    let second: UInt64 = 1_000_000_000
    var pause = RetryPause()
    var now: UInt64 = 0
    for seconds: UInt64 in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600] {
      pause.failed(now: now)
      #expect(!pause.isDue(now: now + seconds * second - 1))
      now += seconds * second
      #expect(pause.isDue(now: now))
    }
    pause.succeeded()
    pause.failed(now: now)
    #expect(pause.isDue(now: now + second))
  }

  @Test(arguments: [20 << 20, FileSpace.logBound])
  func `a log that a reader has held is short again when it ends`(bound: Int) async throws {
    try await inDirectory { path in
      let recorder = LogRecorder()
      let store = try EmbeddedStore(
        path: path, timeout: 10_000, logBound: bound, logger: Logger(label: "store") { _ in recorder })
      _ = try await store.completed()
      let reader = try Self.stranger(path)
      try Self.run("BEGIN", on: reader)
      try Self.run("SELECT count(*) FROM record", on: reader)
      let large = Samples.response(body: String(repeating: "x", count: 1 << 20))
      for _ in 0..<26 { _ = try await store.completed(with: Samples.completion(.whole(large))) }
      #expect(FilePresence.length(of: path + "-wal") > 26 << 20)
      let warning =
        "store: the database's log grows and cannot be emptied; end the other processes that read the file"
      if bound < FileSpace.logBound { try await until { recorder.messages.contains(warning) } }
      try Self.run("ROLLBACK", on: reader)
      if bound < FileSpace.logBound {
        try await until { FilePresence.length(of: path + "-wal") == 0 }
      } else {
        // SQLite itself cuts the log with a later change.
        try await until {
          _ = try await store.completed()
          return FilePresence.length(of: path + "-wal") <= FileSpace.logLimit
        }
        #expect(!recorder.messages.contains(warning))
      }
      try reader.close()
      await store.close()
    }
  }

  @Test func `a file shrinks when its records have expired`() async throws {
    try await inDirectory { path in
      let store = try EmbeddedStore(path: path, timeout: 10_000, logger: Self.logger)
      let large = Samples.response(body: String(repeating: "x", count: 64 << 10))
      // Long enough that none is over before the last is stored; 26 MB.
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<400 {
          group.addTask {
            _ = try await store.completed(
              with: Samples.completion(.whole(large), retention: .seconds(8), remember: .seconds(8)))
          }
        }
        try await group.waitForAll()
      }
      #expect(FilePresence.length(of: path) + FilePresence.length(of: path + "-wal") > 20 << 20)
      try await until { store.figures.swept >= 400 && store.figures.databaseBytes < 6 << 20 }
      await store.close()
      #expect(FilePresence.length(of: path) < 6 << 20)
    }
  }

  @Test func `a file keeps free pages in proportion to the used ones`() {
    #expect(FileSpace(pages: 2000, freePages: 1000).excessPages == 0)
    #expect(FileSpace(pages: 310_351, freePages: 310_345).excessPages == 309_321)
    #expect(FileSpace(pages: 100_000, freePages: 20_000).excessPages == 0)
    #expect(FileSpace(pages: 100_000, freePages: 60_000).excessPages == 50_000)
  }

  @Test func `a file of the first builds is read, and goes on as it is`() async throws {
    try await inDirectory { path in
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let claim = try await first.completed()
      await first.close()
      let queue = try DatabaseQueue(path: path)
      try await queue.writeWithoutTransaction { database in
        try database.execute(sql: "PRAGMA auto_vacuum = NONE")
        try database.execute(sql: "VACUUM")
        for column in ["high", "machine", "counted_from"] {
          try database.execute(sql: "ALTER TABLE clock DROP COLUMN \(column)")
        }
      }
      try queue.close()
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(try await second.find(claim.id).name == .completed)
      #expect(try await second.granted(Samples.request()).attempt == 1)
      await second.close()
    }
  }

  @Test func `the log is emptied by force, unless somebody reads an old state`() async throws {
    try await inDirectory { path in
      let queue = try StoreFile.opened(path).queue
      try Self.run("UPDATE clock SET high = 1", on: queue)
      let reader = try Self.stranger(path)
      try Self.run("BEGIN; SELECT high FROM clock", on: reader)
      try Self.run("UPDATE clock SET high = 2", on: queue)
      func checkpoint() -> LogCheckpoint.Outcome {
        queue.writeWithoutTransaction { LogCheckpoint.run($0, busyMilliseconds: 500) }
      }
      #expect(checkpoint() == .heldByReader)
      try Self.run("ROLLBACK", on: reader)
      #expect(checkpoint() == .emptied)
      #expect(FilePresence.length(of: path + "-wal") == 0)
      try reader.close()
      try queue.close()
    }
  }

  private func until(_ isReached: () async throws -> Bool) async throws {
    let giveUp = BootInstant.now.nanoseconds + 40_000_000_000
    while try await !isReached() {
      guard BootInstant.now.nanoseconds < giveUp else { throw Unexpected(what: "not reached") }
      try await Task.sleep(nanoseconds: 5_000_000)
    }
  }
}
