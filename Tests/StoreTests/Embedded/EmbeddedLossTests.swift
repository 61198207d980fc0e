import Foundation
import GRDB
import Idempotency
import Logging
import Platform
import TestSupport
import Testing

@testable import Store

/// A start of the embedded store on a database that lacks records which it had.
struct EmbeddedLossTests {
  private static let logger = Logger(label: "test")

  /// Runs a test in a directory of its own.
  private func inDirectory(_ body: (TemporaryDirectory) async throws -> Void) async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    try await body(directory)
  }

  @Test(arguments: ["deleted", "emptied"])
  func `a lost database is made anew in the next generation, and counts as a loss`(
    _ loss: String
  ) async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let before = try await first.granted(Samples.request())
      #expect(before.attempt == 1 && first.figures.losses == 0)
      await first.close()
      try lose(path, isDeleted: loss == "deleted")
      #expect(throws: EmbeddedStoreError.loss(path: StoreFile.resolved(path), .gone)) {
        _ = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      }
      let recorder = LogRecorder()
      let second = try EmbeddedStore(path: path, logger: Logger(label: "store") { _ in recorder })
      #expect(second.figures.losses == 1)
      #expect(recorder.messages(at: .critical).count { $0.contains("was deleted or emptied") } == 1)
      // Its owner of before is fenced off.
      let after = try await second.granted(Samples.again(before))
      #expect(after.attempt == 1_000_000_001)
      await second.close()
      // No further loss, and the generation is the file's own.
      #expect(unlink(path + ".lock") == 0)
      let third = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      #expect(third.figures.losses == 0)
      #expect(try await third.granted(Samples.request()).attempt == 1_000_000_001)
      await third.close()
    }
  }

  @Test func `each loss of the database begins a generation above all before`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      try await EmbeddedStore(path: path, logger: Self.logger).close()
      for generation in 1...3 {
        try lose(path, isDeleted: generation != 2)
        // The second start in a generation finds it in the file alone.
        for lossCount in [1, 0] {
          let store = try EmbeddedStore(path: path, logger: Self.logger)
          #expect(store.figures.losses == lossCount)
          #expect(try await store.granted(Samples.request()).attempt == generation * 1_000_000_000 + 1)
          await store.close()
        }
      }
      // An earlier file in its place is behind.
      let copy = directory.file("copy.db")
      _ = try EmbeddedCopy.make(ofFile: path, to: copy)
      try edit(copy) { try $0.execute(sql: "UPDATE fact SET value = '1' WHERE name = 'generation'") }
      try lose(path, isDeleted: true)
      #expect(rename(copy, path) == 0)
      let restored = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(restored.figures.losses == 1)
      #expect(try await restored.granted(Samples.request()).attempt == 4_000_000_001)
      await restored.close()
    }
  }

  @Test(arguments: [
    "", "4711\n", "4711\ngeneration", "4711\ngeneration \n", "\ngeneration -3\n", "1\ngeneration 10000\n",
    "1\ngeneration 99999999999999999999999\n", "generation 7\n", "\u{0}\u{0}\u{0}",
    "4711\r\ngeneration 7\r\n",
    String(repeating: "x\u{FFFD}", count: 4096),
  ])
  func `a lock file that notes no generation stands for the first one`(_ content: String) async throws {
    #expect(LockNote(content) == .unknown)
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      await first.close()
      try Data(content.utf8).write(to: URL(fileURLWithPath: path + ".lock"))
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(second.figures.losses == 0)
      #expect(try await second.granted(Samples.request()).attempt == 1)
      await second.close()
      try lose(path, isDeleted: true)
      try Data(content.utf8).write(to: URL(fileURLWithPath: path + ".lock"))
      let third = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(third.figures.losses == 1)
      #expect(try await third.granted(Samples.request()).attempt == 1_000_000_001)
      let error = #expect(throws: EmbeddedStoreError.self) {
        _ = try EmbeddedStore(path: path, logger: Self.logger)
      }
      #expect(error == .inUse(path: StoreFile.resolved(path), owner: "process \(getpid())"))
      await third.close()
    }
  }

  @Test(arguments: ["its log is gone", "an earlier file is back"])
  func `a database that is older than it was begins the next generation, and counts as a loss`(
    _ loss: String
  ) async throws {
    try await inDirectory { directory in
      let (path, kept) = (directory.file("semel.db"), directory.file("kept.db"))
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      _ = try await first.completed()
      await first.close()
      try Data(contentsOf: URL(fileURLWithPath: path)).write(to: URL(fileURLWithPath: kept))
      let second = try EmbeddedStore(path: path, logger: Self.logger)
      let before = try await second.granted(Samples.request())
      // The file as it would be after kill -9, without its log.
      let main = try Data(contentsOf: URL(fileURLWithPath: path))
      await second.close()
      let content = loss == "its log is gone" ? main : try Data(contentsOf: URL(fileURLWithPath: kept))
      try content.write(to: URL(fileURLWithPath: path))
      #expect(throws: EmbeddedStoreError.loss(path: StoreFile.resolved(path), .behind)) {
        _ = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      }
      let recorder = LogRecorder()
      let third = try EmbeddedStore(path: path, logger: Logger(label: "store") { _ in recorder })
      #expect(third.figures.losses == 1)
      #expect(recorder.messages(at: .critical).count { $0.contains("older than when Semel ran last") } == 1)
      #expect(try await third.granted(Samples.again(before)).attempt == 1_000_000_001)
      await third.close()
      let fourth = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      #expect(fourth.figures.losses == 0)
      await fourth.close()
    }
  }

  @Test func `a first start that failed leaves nothing to be missed`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      // A start that was killed between the two files.
      try Data(LockNote.new.text(owner: 4711).utf8).write(to: URL(fileURLWithPath: path + ".lock"))
      #expect(LockNote("4711\nnew\n") == .new)
      let store = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      #expect(store.figures.losses == 0)
      #expect(try await store.granted(Samples.request()).attempt == 1)
      await store.close()
      try lose(path, isDeleted: true)
      #expect(throws: EmbeddedStoreError.loss(path: StoreFile.resolved(path), .gone)) {
        _ = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      }
    }
  }

  @Test func `a start that died in the place of a lost database hides no loss, and uses up no generation`()
    async throws
  {
    let now = WallClock.milliseconds()
    let note = LockNote.reached(FileProgress(generation: 4, start: 9, latest: now))
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      try await EmbeddedStore(path: path, logger: Self.logger).close()
      // Its tables were made, and nothing was written to them.
      try edit(path) { try $0.execute(sql: "DELETE FROM fact; UPDATE clock SET latest = 0") }
      try Data(note.text(owner: 1).utf8).write(to: URL(fileURLWithPath: path + ".lock"))
      #expect(throws: EmbeddedStoreError.loss(path: StoreFile.resolved(path), .behind)) {
        _ = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
      }
      let store = try EmbeddedStore(path: path, logger: Self.logger)
      #expect(store.figures.losses == 1)
      #expect(try await store.granted(Samples.request()).attempt == 5_000_000_001)
      await store.close()
      let left = LockNote(try String(contentsOfFile: path + ".lock", encoding: .utf8))
      let latest = left.progress?.latest ?? 0
      #expect(left == .reached(FileProgress(generation: 5, start: 10, latest: latest)) && latest >= now)
    }
  }

  @Test(arguments: ["deleted", "its log is gone", "a copy in a new place", "deleted beside an early note"])
  func `a start that is killed before it has logged a loss leaves it to the next one`(
    _ loss: String
  ) async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let first = try EmbeddedStore(path: path, logger: Self.logger)
      let main = try Data(contentsOf: URL(fileURLWithPath: path))
      _ = try await first.completed()
      await first.close()
      switch loss {
      case "its log is gone": try main.write(to: URL(fileURLWithPath: path))
      case "a copy in a new place":
        let copy = directory.file("copy.db")
        _ = try EmbeddedCopy.make(ofFile: path, to: copy)
        try lose(path, isDeleted: true)
        #expect(rename(copy, path) == 0 && unlink(path + ".lock") == 0)
      default:
        try lose(path, isDeleted: true)
        if loss != "deleted" {
          try Data("4711\n".utf8).write(to: URL(fileURLWithPath: path + ".lock"))
        }
      }
      // The files as a kill would leave them, once the transaction is on the disk.
      let killed = directory.file("killed.db")
      let start = try EmbeddedStore(
        path: path, logger: Self.logger,
        flushLog: {
          for suffix in ["", "-wal", ".lock"] {
            let content = try? Data(contentsOf: URL(fileURLWithPath: path + suffix))
            try? content?.write(to: URL(fileURLWithPath: killed + suffix))
          }
        })
      #expect(start.figures.losses == 1)
      await start.close()
      #expect(throws: EmbeddedStoreError.loss(path: StoreFile.resolved(killed), .behind)) {
        _ = try EmbeddedStore(path: killed, requiresDurable: true, logger: Self.logger)
      }
      let recorder = LogRecorder()
      let next = try EmbeddedStore(path: killed, logger: Logger(label: "store") { _ in recorder })
      #expect(next.figures.losses == 1)
      #expect(recorder.messages(at: .critical).count == 1)
      // The killed start has used up no generation.
      #expect(try await next.granted(Samples.request()).attempt == 1_000_000_001)
      await next.close()
      let last = try EmbeddedStore(path: killed, requiresDurable: true, logger: Self.logger)
      #expect(last.figures.losses == 0)
      await last.close()
    }
  }

  @Test func `the last generation is followed by none`() async throws {
    try await inDirectory { directory in
      let path = directory.file("semel.db")
      let note = LockNote.reached(FileProgress(generation: FileProgress.maxGeneration))
      try Data(note.text(owner: 1).utf8).write(to: URL(fileURLWithPath: path + ".lock"))
      let store = try EmbeddedStore(path: path, logger: Self.logger)
      let base = FileProgress.maxGeneration * 1_000_000_000
      #expect(try await store.granted(Samples.request()).attempt == base + 1)
      await store.close()
    }
  }

  /// Deletes the database, or empties it.
  private func lose(_ path: String, isDeleted: Bool) throws {
    for suffix in ["-wal", "-shm"] { unlink(path + suffix) }
    #expect((isDeleted ? unlink(path) : truncate(path, 0)) == 0)
  }

  @discardableResult
  private func edit<T>(_ path: String, _ body: (Database) throws -> T) throws -> T {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.write(body)
  }
}
