import GRDB
import GRDBSQLite
import Idempotency
import NIOCore
import Wire

/// A failure that SQLite reports.
struct SQLError: Error, Equatable {
  /// SQLite's extended result code.
  let code: Int32
  let text: String
  /// Whether a record's own row or response was being read.
  var isOfReading = false

  var isOfDevice: Bool {
    switch code & 0xFF {
    case SQLITE_FULL, SQLITE_IOERR, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_BUSY, SQLITE_LOCKED,
      SQLITE_NOMEM:
      true
    default: false
    }
  }

  var isFull: Bool { code & 0xFF == SQLITE_FULL }
  var isCorrupt: Bool { code & 0xFF == SQLITE_CORRUPT || code & 0xFF == SQLITE_NOTADB }
}

/// A prepared statement, kept for the lifetime of its connection. GRDB owns it; it runs without GRDB's layers, because
/// every request runs several. Parameters count from 1, columns from 0.
final class SQLStatement {
  private let statement: Statement
  private let handle: OpaquePointer

  init(_ database: Database, _ sql: String) throws {
    statement = try database.makeStatement(sql: sql)
    handle = statement.sqliteStatement
  }

  func run() throws(SQLError) {
    _ = try step()
    reset()
  }

  /// Advances to the next row. False at the end. Call `reset` after it.
  func step() throws(SQLError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default:
      let connection = sqlite3_db_handle(handle)
      let error = SQLError(
        code: sqlite3_extended_errcode(connection), text: String(cString: sqlite3_errmsg(connection)))
      reset()
      throw error
    }
  }

  func reset() { sqlite3_reset(handle) }

  var lastInserted: Int64 { sqlite3_last_insert_rowid(sqlite3_db_handle(handle)) }
}

extension SQLStatement {
  /// SQLite copies the bytes before the call returns (`SQLITE_TRANSIENT`).
  private static var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

  /// Takes the code of a binding. A statement that was not reset refuses one and keeps the value before: another
  /// record.
  private func bound(_ code: Int32) {
    invariant(code != SQLITE_MISUSE, "a value is bound to a statement that is being run")
    invariant(code != SQLITE_RANGE, "a value is bound to a parameter that a statement does not have")
  }

  func bind(_ index: Int32, _ value: Int64) { bound(sqlite3_bind_int64(handle, index, value)) }

  func bindNull(_ index: Int32) { bound(sqlite3_bind_null(handle, index)) }

  func bind(_ index: Int32, _ value: String) {
    var value = value
    value.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { characters in
        bound(sqlite3_bind_text(handle, index, characters.baseAddress, Int32(bytes.count), Self.copied))
      }
    }
  }

  func bind(_ index: Int32, _ digest: Digest256) {
    bind(
      index,
      (
        digest.words[0].bigEndian, digest.words[1].bigEndian, digest.words[2].bigEndian,
        digest.words[3].bigEndian
      ))
  }

  func bind(_ index: Int32, _ token: OwnerToken) { bind(index, (token.high.bigEndian, token.low.bigEndian)) }

  private func bind<Value: BitwiseCopyable>(_ index: Int32, _ value: Value) {
    withUnsafeBytes(of: value) { bytes in
      bound(sqlite3_bind_blob64(handle, index, bytes.baseAddress, UInt64(bytes.count), Self.copied))
    }
  }

  /// Binds the bytes of `buffer` while `body` runs, without a copy.
  func lending<T>(
    _ index: Int32, _ buffer: ByteBuffer, _ body: () throws(SQLError) -> T
  ) throws(SQLError) -> T {
    let result = buffer.withUnsafeReadableBytes { bytes -> Result<T, SQLError> in
      if bytes.isEmpty {
        // A null pointer would bind NULL.
        bound(sqlite3_bind_zeroblob(handle, index, 0))
      } else {
        bound(sqlite3_bind_blob64(handle, index, bytes.baseAddress, UInt64(bytes.count), nil))
      }
      do throws(SQLError) { return .success(try body()) } catch { return .failure(error) }
    }
    bindNull(index)
    return try result.get()
  }
}

extension SQLStatement {
  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  func string(_ column: Int32) -> String {
    bytes(column) { String(decoding: $0, as: UTF8.self) }
  }

  func buffer(_ column: Int32) -> ByteBuffer {
    bytes(column) { $0.isEmpty ? ByteBuffer() : ByteBuffer(bytes: $0) }
  }

  func digest(_ column: Int32) -> Digest256? { bytes(column) { Digest256($0) } }

  func token(_ column: Int32) -> OwnerToken? {
    bytes(column) { bytes in
      guard bytes.count == 16 else { return nil }
      return OwnerToken(
        high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
        low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
  }

  private func bytes<T>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> T) -> T {
    let start = sqlite3_column_blob(handle, column)
    return body(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
  }
}

/// The failure of a transaction.
struct TransactionError: Error, Equatable {
  let cause: SQLError
  /// Whether the commit itself failed. Recovery of the log may find its last write after a crash before the next commit.
  /// Otherwise the transaction was certainly rolled back.
  let isOfCommit: Bool

  /// Whether commands of the group may succeed when run one by one.
  var isOfOneCommand: Bool { !isOfCommit && !cause.isOfDevice }

  /// The failure for those who sent the commands. Only damage to the record itself makes it unreadable: the command may
  /// succeed later, and an outcome must not be given up.
  var storeError: StoreError {
    if isOfCommit { return .fateUnknown(cause.text) }
    return cause.isCorrupt && cause.isOfReading ? .unreadable(cause.text) : .unavailable(cause.text)
  }
}

final class Transaction {
  private let begin: SQLStatement
  private let commit: SQLStatement
  private let rollback: SQLStatement

  init(_ database: Database) throws {
    begin = try SQLStatement(database, "BEGIN IMMEDIATE")
    commit = try SQLStatement(database, "COMMIT")
    rollback = try SQLStatement(database, "ROLLBACK")
  }

  /// Runs the body as one transaction. A transaction that writes nothing does not wait for the disk.
  func run(_ body: () throws(SQLError) -> Void) throws(TransactionError) {
    do throws(SQLError) {
      try begin.run()
      try body()
    } catch {
      abandon()
      throw TransactionError(cause: error, isOfCommit: false)
    }
    do throws(SQLError) {
      try commit.run()
    } catch {
      abandon()
      // If the disk is full, the commit mark that makes the log's frames valid was never written.
      throw TransactionError(cause: error, isOfCommit: !error.isFull)
    }
  }

  private func abandon() {
    // Fails if SQLite has already rolled back, as it does after most disk errors.
    try? rollback.run()
  }
}
