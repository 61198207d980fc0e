import Foundation
import GRDB
import Idempotency
import NIOCore

@testable import Store

/// The embedded store's table with one row, which a fuzzer writes, and which is never committed.
final class FuzzedTable {
  nonisolated(unsafe) static let shared = FuzzedTable()

  private static let insertRecord = """
    INSERT INTO record (id, sweep_at, state, attempt, kept_until, recipe, first_seen, flags,
      unknown_retention, remember, at, expires_at, status, location, response, owner, digest, format)
    VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    """
  private static let times: [Int64] = [.min, 0, 1_700_000_000_000, .max]

  private let queue: DatabaseQueue
  private let table: RecordTable
  private let insertRecord: SQLStatement
  private let insertResponse: SQLStatement
  private let id: RecordID

  private init() {
    guard let digest = Digest256(repeatElement(1, count: 32)) else {
      preconditionFailure("FuzzedTable: an id of another length")
    }
    id = RecordID(digest)
    let path = NSTemporaryDirectory() + "semel-fuzz-\(getpid()).db"
    do {
      queue = try StoreFile.opened(path).queue
      (table, insertRecord, insertResponse) = try queue.writeWithoutTransaction { database in
        (
          try RecordTable(database), try SQLStatement(database, Self.insertRecord),
          try SQLStatement(database, "INSERT INTO response VALUES (1, x'', ?, x'')")
        )
      }
    } catch {
      fatalError("FuzzedTable: \(error)")
    }
    // The open file stays without a name until this process ends.
    for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
  }

  /// The rule that a row of these columns breaks, in words.
  func fault(in columns: [ArraySlice<UInt8>]) throws -> String? {
    try queue.writeWithoutTransaction { database in
      var fault: String?
      try database.inTransaction {
        try write(columns)
        fault = try self.fault()
        return .rollback
      }
      return fault
    }
  }

  /// In the order of the columns: numbers as far as they read as such, an empty one NULL where that may be; at the end
  /// owner, digest and the response's body as bytes, and anything at all for a row that is encoded.
  private func write(_ columns: [ArraySlice<UInt8>]) throws {
    let column = { (index: Int) in index < columns.count ? columns[index] : [] }
    insertRecord.bind(1, id.digest)
    for index in 0..<13 {
      let text = String(decoding: column(index), as: UTF8.self)
      if let number = Int64(text) {
        insertRecord.bind(Int32(index) + 2, number)
      } else if text.isEmpty, index > 2 {
        insertRecord.bindNull(Int32(index) + 2)
      } else {
        insertRecord.bind(Int32(index) + 2, text)
      }
    }
    insertRecord.bind(17, column(16).isEmpty ? 1 : 2)
    try insertRecord.lending(15, ByteBuffer(bytes: column(13))) { () throws(SQLError) in
      try insertRecord.lending(16, ByteBuffer(bytes: column(14))) { () throws(SQLError) in
        try insertRecord.run()
      }
    }
    try insertResponse.lending(1, ByteBuffer(bytes: column(15))) { () throws(SQLError) in
      try insertResponse.run()
    }
  }

  /// An entry that can be read is the same when it is written and read again, and stands somewhere at any time.
  private func fault() throws -> String? {
    guard let entry = try? table.find(id).entry else { return nil }
    for time in Self.times { _ = entry.standing(now: StoreInstant(milliseconds: time)) }
    try table.put(id, entry, over: .nothing)
    let again = try table.find(id).entry
    return again == entry ? nil : "\(entry) is read again as \(String(describing: again))"
  }
}
