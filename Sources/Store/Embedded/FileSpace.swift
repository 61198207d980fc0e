import GRDB
import GRDBSQLite
import Glibc

/// The space in the database file, and the limits that return free space to the system and keep the log short.
struct FileSpace: Equatable {
  /// The length to which SQLite truncates its log once all of it is in the database, in bytes: some thousand commands.
  static let logLimit = 16 << 20
  /// The length of the log, in bytes, from which it is emptied explicitly, and the operator is warned if that fails.
  static let logBound = 64 << 20
  /// The minimum number of pages that are kept free for later use: 4 MiB. If it is more, a quarter of the pages in use
  /// is kept free.
  private static let minFreePages = 1024
  /// The free space of a file system that counts as room for records again, in bytes.
  static let minFree = 1 << 20

  /// The space that is free in the file system of a file, in bytes; `nil` if that is not known.
  static func free(at path: String) -> Int? {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { return nil }
    return Int(clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).0)
  }

  var pages: Int
  var freePages: Int

  /// The number of free pages to return to the system.
  var excessPages: Int { max(0, freePages - max(Self.minFreePages, (pages - freePages) / 4)) }
}

/// Empties SQLite's log explicitly.
enum LogCheckpoint {
  enum Outcome: Equatable { case emptied, heldByReader, failed(Int32) }

  /// Moves the log into the database and truncates it. Does not wait: a process that reads an old state makes it fail.
  static func run(_ database: Database, busyMilliseconds: Int32) -> Outcome {
    let handle = database.sqliteConnection
    sqlite3_busy_timeout(handle, 0)
    defer { sqlite3_busy_timeout(handle, busyMilliseconds) }
    switch sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil) {
    case SQLITE_OK: return .emptied
    case SQLITE_BUSY: return .heldByReader
    case let code: return .failed(code)
    }
  }
}
