import Foundation
import Idempotency
import Logging
import NIOCore
import Store
import TestSupport
import Testing

/// The embedded store after the death of its process, and on a full disk, in a process of its own.
struct EmbeddedCrashTests {
  @Test func `kill -9 loses nothing that was acknowledged`() async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    var acknowledged: [String] = []
    for round in 1...3 {
      let writer = try ManagedProcess.writer("forever", path)
      _ = try await writer.lines(atLeast: 300) { _ in true }
      let error = #expect(throws: EmbeddedStoreError.self) {
        try EmbeddedStore(path: path, logger: Logger(label: "test"))
      }
      guard case .inUse(_, "process \(writer.id)") = error else {
        throw Unexpected(what: "\(error as Any)")
      }
      try await writer.kill()
      #expect(try await writer.exit() == .signal(SIGKILL))
      acknowledged += writer.wholeLines
      #expect(acknowledged.count >= 300 * round)
    }
    try await expectCompleted(acknowledged, in: path)
  }

  @Test func `a store that could not write goes on once it can`() async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    let writer = try ManagedProcess.writer("limited", path)
    #expect(try await writer.exit() == .code(0))
    let lines = writer.wholeLines
    #expect(lines.contains("failed"))
    #expect(lines.last != "failed")
    try await expectCompleted(lines.filter { $0 != "failed" }, in: path)
  }

  private func expectCompleted(_ ids: [String], in path: String) async throws {
    let store = try EmbeddedStore(path: path, logger: Logger(label: "test"))
    for text in ids {
      let digest = try #require(Digest256(text: text))
      let record = try await store.find(RecordID(digest)).completedRecord
      guard case .whole(let response) = record?.outcome else { throw Unexpected(what: "\(text) is lost") }
      #expect(response.body.getString(at: response.body.readerIndex, length: text.utf8.count) == text)
    }
    await store.close()
  }
}

extension ManagedProcess {
  /// A `store-writer`, which is built beside the test bundle.
  fileprivate static func writer(_ mode: String, _ path: String) throws -> ManagedProcess {
    let bundle = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    return try ManagedProcess([bundle.appendingPathComponent("store-writer").path, mode, path])
  }

  /// The lines that it has printed whole.
  fileprivate var wholeLines: [String] {
    output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
  }
}
