import Foundation
import Idempotency
import Logging
import NIOCore
import Store
import TestSupport
import Testing

/// What the embedded store keeps when its process dies or its disk is full: shown on a process of its own.
@Suite struct EmbeddedCrashTests {
  @Test func `kill -9 loses nothing that was acknowledged`() async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    var acknowledged: [String] = []
    for round in 1...3 {
      let writer = try Writer("forever", path)
      acknowledged += writer.lines(upTo: 300)
      let error = #expect(throws: EmbeddedStoreError.self) {
        try EmbeddedStore(path: path, logger: Logger(label: "test"))
      }
      guard case .inUse(_, "process \(writer.process.processIdentifier)") = error else {
        throw Unexpected(what: "\(error as Any)")
      }
      kill(writer.process.processIdentifier, SIGKILL)
      acknowledged += writer.lines(upTo: .max)
      writer.process.waitUntilExit()
      #expect(writer.process.terminationReason == .uncaughtSignal)
      #expect(acknowledged.count >= 300 * round)
    }
    try await expectCompleted(acknowledged, in: path)
  }

  @Test func `a store that could not write goes on once it can`() async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    let writer = try Writer("limited", path)
    let lines = writer.lines(upTo: .max)
    writer.process.waitUntilExit()
    #expect(writer.process.terminationStatus == 0)
    #expect(lines.contains("failed"))
    #expect(lines.last != "failed")
    try await expectCompleted(lines.filter { $0 != "failed" }, in: path)
  }

  private func expectCompleted(_ ids: [String], in path: String) async throws {
    let store = try EmbeddedStore(path: path, logger: Logger(label: "test"))
    for text in ids {
      let digest = try #require(Digest256(text: text))
      let record = try await store.find(RecordID(digest)).completedRecord
      guard case .kept(let response) = record?.outcome else { throw Unexpected(what: "\(text) is lost") }
      #expect(response.body.getString(at: response.body.readerIndex, length: text.utf8.count) == text)
    }
    await store.close()
  }
}

/// A `store-writer` process and what it prints.
private final class Writer {
  let process = Process()
  private let output = Pipe()
  private var unread = Data()

  init(_ mode: String, _ path: String) throws {
    // It is built beside the test bundle.
    let bundle = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    process.executableURL = bundle.appendingPathComponent("store-writer")
    process.arguments = [mode, path]
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  /// Waits for as many whole lines, or for the end of the output.
  func lines(upTo count: Int) -> [String] {
    var lines: [String] = []
    while lines.count < count {
      while lines.count < count, let end = unread.firstIndex(of: 10) {
        lines.append(String(decoding: unread[unread.startIndex..<end], as: UTF8.self))
        unread = Data(unread[(end + 1)...])
      }
      guard lines.count < count else { break }
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { break }
      unread.append(more)
    }
    return lines
  }
}
