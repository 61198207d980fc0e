import Foundation
import Idempotency
import Logging
import TestSupport
import Testing

@testable import Store

/// The files beside the database: those that others change while the store is open, and those that are not made.
struct EmbeddedLogTests {
  private static let logger = Logger(label: "test")

  @Test(arguments: ["emptied", "shortened", "indexDeleted"])
  func `a log that was changed past SQLite is noticed, and costs no record that was in the database`(
    _ change: String
  ) async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    let first = try EmbeddedStore(path: path, logger: Self.logger)
    let kept = try await first.completed()
    await first.close()
    let second = try EmbeddedStore(path: path, logger: Self.logger)
    _ = try await second.completed()
    switch change {
    case "emptied": #expect(truncate(path + "-wal", 0) == 0)
    case "shortened": #expect(truncate(path + "-wal", 4096) == 0)
    default: #expect(unlink(path + "-shm") == 0)
    }
    let error = await #expect(throws: StoreError.self) { try await second.granted(Samples.request()) }
    guard case .refused(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
    #expect(reason.contains(change == "indexDeleted" ? "-shm, the index" : "-wal, the log"), "\(reason)")
    await second.close()
    // In this process SQLite holds the log's old index. The database itself is whole.
    let copy = directory.file("copy.db")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let third = try EmbeddedStore(path: copy, logger: Self.logger)
    #expect(try await third.find(kept.id).completedRecord?.outcome == .whole(Samples.response()))
    await third.close()
  }

  @Test func `a device is refused before a file is made beside it`() {
    let path = "/dev/full"
    #expect(throws: EmbeddedStoreError.cannotOpen(path: path, reason: "it is no regular file")) {
      try EmbeddedStore(path: path, logger: Self.logger)
    }
    #expect(!FileManager.default.fileExists(atPath: path + ".lock"))
  }
}
