import Foundation
import GRDB
import Idempotency
import Logging
@testable import Store
import TestSupport
import Testing

/// The embedded store and the file that it is given.
struct EmbeddedFileTests {
  private static let logger = Logger(label: "test")

  /// Runs a test in a directory of its own.
  private func inDirectory(_ body: (TemporaryDirectory) async throws -> Void) async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    try await body(directory)
  }

  @Test func `records outlive the process`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let completed = try await first.completed()
      let open = try await first.granted(Samples.request())
      await first.close()
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(try await second.find(completed.id).completedRecord?.outcome == .whole(Samples.response()))
      #expect(try await second.find(open.id).name == .inFlight)
      #expect(try await second.complete(open, with: Samples.completion()).outcome == .done)
      await second.close()
    }
  }

  @Test func `a file of a build without origins is read, and gets them`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let old = try await first.completed(Samples.request(attribution: Samples.attribution()))
      await first.close()
      try edit(path) { try $0.execute(sql: "ALTER TABLE record DROP COLUMN origin") }
      let origin = Samples.attribution()
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      let view = try #require(try await second.inspect(old.id))
      #expect(view.standing.name == .completed && view.attribution == nil)
      let new = try await second.granted(Samples.request(attribution: origin))
      await second.close()
      let third = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(try await third.inspect(new.id)?.attribution == origin)
      await third.close()
    }
  }

  @Test func `a second store on one file is refused, by whatever name`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let store = try EmbeddedStore(path: path, logger: Self.logger)
      let link = directory.file("link.db")
      #expect(symlink(path, link) == 0)
      for name in [path, link] {
        let error = #expect(throws: EmbeddedStoreError.self) {
          _ = try EmbeddedStore(path: name, logger: Self.logger)
        }
        #expect(error == .inUse(path: StoreFile.resolved(path), owner: "process \(getpid())"))
      }
      await store.close()
      await #expect(throws: StoreError.unavailable("the store is closed")) {
        try await store.find(Samples.id())
      }
    }
  }

  @Test func `a file that is not a store of Semel's is refused with the reason`() async throws {
    try await inDirectory { directory in
      let missing = directory.file("none/semel.db")
      #expect(throws: EmbeddedStoreError.noDirectory(path: missing)) {
        try EmbeddedStore(path: missing, logger: Self.logger)
      }
      let text = directory.file("text.db")
      try String(repeating: "no database at all ", count: 100).write(
        toFile: text, atomically: true, encoding: .utf8)
      #expect(throws: EmbeddedStoreError.notADatabase(path: StoreFile.resolved(text))) {
        try EmbeddedStore(path: text, logger: Self.logger)
      }
      let foreign = directory.file("foreign.db")
      try edit(foreign) { try $0.execute(sql: "CREATE TABLE orders (id)") }
      #expect(throws: EmbeddedStoreError.foreignDatabase(path: StoreFile.resolved(foreign))) {
        try EmbeddedStore(path: foreign, logger: Self.logger)
      }
      let newer = directory.file("newer.db")
      try await EmbeddedStore(path: newer, logger: Self.logger).close()
      try edit(newer) { try $0.execute(sql: "PRAGMA user_version = 9") }
      #expect(
        throws: EmbeddedStoreError.newerFormat(path: StoreFile.resolved(newer), found: 9, known: 1)
      ) {
        try EmbeddedStore(path: newer, logger: Self.logger)
      }
    }
  }

  @Test func `an unreadable record is an error, and no reason to run the request`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      var records: [Claim] = []
      for _ in 0..<4 { records.append(try await first.completed()) }
      await first.close()
      try edit(path) { database in
        for (record, change) in zip([0, 1, 3], ["format = 9", "owner = x'00'", "at = NULL"]) {
          try database.execute(
            sql: "UPDATE record SET \(change) WHERE id = ?", arguments: [Self.blob(records[record].id)])
        }
        try database.execute(
          sql: "DELETE FROM response WHERE number = (SELECT response FROM record WHERE id = ?)",
          arguments: [Self.blob(records[2].id)])
      }
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      let reasons = ["format 9", "without owner", "response is gone", "without the time"]
      for (claim, reason) in zip(records, reasons) {
        let error = await #expect(throws: StoreError.self) { try await second.claim(Samples.again(claim)) }
        guard case .unreadable(let text) = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(text.contains(reason))
      }
      #expect(try await second.list(after: nil).unreadable == [records[0].id])
      #expect(try await second.granted(Samples.request()).attempt == 1)
      // The operator's way out, which leaves a fence as any other.
      for claim in records {
        #expect(try await second.forget(claim.id, fence: .seconds(60)))
        #expect(try await second.renew(claim) == .lost(.absent))
        #expect(try await second.granted(Samples.again(claim)).attempt == 2)
      }
      #expect(try await second.list(after: nil).unreadable.isEmpty)
      await second.close()
    }
  }

  @Test(arguments: [Int64.min, .max])
  func `attempts are counted on from a damaged number`(number: Int64) async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let claim = try await first.granted(Samples.request())
      #expect(try await first.release(claim, .uncounted) == .done)
      await first.close()
      try edit(path) {
        try $0.execute(sql: "UPDATE record SET attempt = ?1, status = ?1", arguments: [number])
      }
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      for _ in 0..<2 {
        let next = try await second.granted(Samples.again(claim))
        #expect(next.attempt > 1 && next.sendings >= 1)
        #expect(try await second.release(next, .uncounted) == .done)
      }
      await second.close()
    }
  }

  @Test(arguments: [
    "UPDATE record SET status = 0", "UPDATE record SET status = 99999", "UPDATE record SET status = NULL",
    "UPDATE record SET status = 'zz'", "UPDATE response SET fields = 'no field line'",
    "UPDATE response SET trailers = 'no field line'",
  ])
  func `a response that is damaged is unreadable`(damage: String) async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let claim = try await first.completed()
      await first.close()
      try edit(path) { try $0.execute(sql: damage) }
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      let error = await #expect(throws: StoreError.self) { try await second.claim(Samples.again(claim)) }
      guard case .unreadable(let text) = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(text.contains("response is damaged"))
      await second.close()
    }
  }

  @Test func `a link whose file is gone leads to that file`() async throws {
    try await inDirectory { directory in
      let folder = StoreFile.resolved(directory.path)
      let real = "\(folder)/real.db"
      #expect(StoreFile.resolved(directory.file("real.db")) == real)
      let links = [("first", "real.db"), ("second", "first"), ("third", directory.file("second"))]
      for (link, target) in links { #expect(symlink(target, directory.file(link)) == 0) }
      for (link, _) in links { #expect(StoreFile.resolved(directory.file(link)) == real) }
      #expect(symlink("loop", directory.file("loop")) == 0)
      #expect(StoreFile.resolved(directory.file("loop")).hasSuffix("/loop"))
      #expect(StoreFile.resolved("/gone.db") == "/gone.db")
    }
  }

  @Test func `the sweeper leaves the fence of a record that ends before it`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let store = try EmbeddedStore(path: path, logger: Self.logger)
      let first = try await store.granted(Samples.request())
      #expect(try await store.forget(first.id, fence: .seconds(60)))
      let second = try await store.granted(Samples.request(first.id, remember: 1))
      let swept = store.figures.swept
      #expect(
        try await store.complete(second, with: Samples.completion(retention: 1, remember: 1)).outcome == .done
      )
      while store.figures.swept == swept { try await Task.sleep(for: .milliseconds(20)) }
      #expect(try await store.complete(first, with: Samples.completion()).outcome == .lost(.absent))
      #expect(try await store.granted(Samples.changed(first)).attempt == 3)
      await store.close()
    }
  }

  @Test func `the file is readable for its owner alone`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let store = try EmbeddedStore(path: path, logger: Self.logger)
      _ = try await store.completed()
      for suffix in ["", "-wal", "-shm", ".lock"] {
        var status = stat()
        #expect(stat(path + suffix, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600, "\(suffix)")
      }
      await store.close()
    }
  }

  @Test func `a clock set back does not revive a lapsed lease`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let claim = try await first.granted(Samples.request())
      await first.close()
      // As if the clock had stood five minutes ahead when the file was last written.
      let ahead = claim.firstSeen + .seconds(300)
      try edit(path) { try $0.execute(sql: "UPDATE clock SET latest = ?", arguments: [ahead.milliseconds]) }
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(try await second.find(claim.id).name == .unknown)
      #expect(try await second.granted(Samples.request()).firstSeen >= ahead)
      await second.close()
      let latest = try edit(path) { try Int64.fetchOne($0, sql: "SELECT latest FROM clock") ?? 0 }
      #expect(latest >= ahead.milliseconds)
    }
  }

  private static func blob(_ id: RecordID) -> Data { Data((0..<32).map { id.digest[$0] }) }

  @discardableResult
  private func edit<T>(_ path: String, _ body: (Database) throws -> T) throws -> T {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.write(body)
  }
}
