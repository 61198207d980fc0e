import Foundation
import GRDB
import Idempotency
import Logging
import NIOCore
import Platform
import TestSupport
import Testing

@testable import Store

/// The file of an embedded store that an earlier version made and was killed on (`Tests/Earlier/embedded.sql`).
struct EarlierFileTests {
  /// A record of the file, by the path of its request.
  private enum Record: String {
    case done = "tdJEjDEENonYRHtTSfeGtV5i65UA5lRlNov2bhEINRk"
    case large = "vIDxaRwEzMKlsfxjQ2SvnobgBitHTuEYHMJEpujXTYY"
    case busy = "K-6L7q8yMONe0mfF594wOTIHqxIgp3Y5AvJfS7dcAyo"
    case lost = "Thm55HGq5DwBQFHAnopgBD_9sCwul0Gq-WUaq0i-Z7o"
    case forgotten = "TYDxT-TqDBIQ8uWeK0lAxQIr19sor5KzqigkHwIU1q0"
    case held = "nv7LnjJCIKcpfpjXRzuBg2t_JbeYtdpxvbk5i3vmAPI"

    func id() throws -> RecordID { RecordID(try #require(Digest256(text: rawValue))) }
  }

  private static let logger = Logger(label: "test")
  private static let source = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../../Earlier/embedded.sql").standardized.path
  /// The statements of the tables and the index, which a return to the earlier version needs as they are.
  private static let schema =
    "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_master ORDER BY name)"

  private static func edit<T>(_ path: String, _ body: (Database) throws -> T) throws -> T {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.writeWithoutTransaction(body)
  }

  /// Makes the file in a directory, with the note beside it.
  private static func make(at path: String) throws {
    let sql = try String(contentsOfFile: source, encoding: .utf8)
    try edit(path) { try $0.execute(sql: sql) }
    try note(path)
  }

  private static func note(_ path: String) throws {
    let latest = try edit(path) { try Int64.fetchOne($0, sql: "SELECT latest FROM clock") ?? 0 }
    try Data("10112\ngeneration 0\nlatest \(latest)\n".utf8).write(to: URL(fileURLWithPath: path + ".lock"))
  }

  /// Takes the times of the file forwards, as if it had been killed a minute ago.
  private static func advance(_ path: String) throws {
    let until = WallClock.milliseconds() - 60_000
    try edit(path) { database in
      let span = until - (try Int64.fetchOne(database, sql: "SELECT latest FROM clock") ?? 0)
      try database.execute(
        sql: """
          UPDATE record SET at = at + ?1, first_seen = first_seen + ?1, expires_at = expires_at + ?1,
            kept_until = kept_until + ?1, sweep_at = sweep_at + ?1
          """, arguments: [span])
      try database.execute(sql: "UPDATE clock SET latest = ?", arguments: [until])
    }
    try note(path)
  }

  @Test func `records of an earlier version stand where they stood, and it could go on`() async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    try Self.make(at: path)
    try Self.advance(path)
    let schema = try Self.edit(path) { try String.fetchOne($0, sql: Self.schema) }
    let store = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
    #expect(store.figures.losses == 0)
    for (record, length) in [(Record.done, 11), (.large, 6612)] {
      let outcome = try await store.find(try record.id()).completedRecord?.outcome
      guard case .whole(let response) = outcome else {
        throw Unexpected(what: "\(record): \(outcome as Any)")
      }
      #expect(response.status == 201 && response.body.readableBytes == length)
    }
    #expect(try await store.find(Record.busy.id()).name == .released)
    #expect(try await store.find(Record.lost.id()).name == .unknown)
    // Its lease of ten seconds has lapsed.
    #expect(try await store.find(Record.held.id()).name == .unknown)
    #expect(try await store.find(Record.forgotten.id()).name == .absent)
    // The fence counts on, and a new record begins at the first attempt.
    #expect(try await store.granted(Samples.request(Record.forgotten.id())).attempt == 2)
    #expect(try await store.granted(Samples.request()).attempt == 1)
    await store.close()
    #expect(try Self.edit(path) { try String.fetchOne($0, sql: Self.schema) } == schema)
    #expect(try Self.edit(path) { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 1)
  }

  @Test func `the file of an earlier version that is old keeps its records, and it could go on`() async throws
  {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    try Self.make(at: path)
    try Self.advance(path)
    // Whatever the machine's time is, that of the file is sixty days before it, beyond the end of each record.
    let span = Int64(60 * 86_400_000)
    try Self.edit(path) { database in
      try database.execute(
        sql: "UPDATE record SET at = at - ?1, first_seen = first_seen - ?1, expires_at = expires_at - ?1, "
          + "kept_until = kept_until - ?1, sweep_at = sweep_at - ?1", arguments: [span])
      try database.execute(sql: "UPDATE clock SET latest = latest - ?", arguments: [span])
    }
    try Self.note(path)
    let store = try EmbeddedStore(path: path, requiresDurable: true, logger: Self.logger)
    #expect(store.figures.losses == 0)
    for record in [Record.done, .large] { #expect(try await store.find(record.id()).name == .completed) }
    #expect(try await store.find(Record.busy.id()).name == .released)
    #expect(try await store.find(Record.lost.id()).name == .unknown)
    #expect(try await store.granted(Samples.request(Record.forgotten.id())).attempt == 2)
    await store.close()
    // The earlier version would contradict the clock by the uptime that it wrote.
    let uptime = try Self.edit(path) {
      try Row.fetchOne($0, sql: "SELECT machine, counted_from FROM clock WHERE machine IS NULL")
    }
    #expect(uptime?["counted_from"] as Int64?? == .some(nil))
  }
}
