import GRDB
import GRDBSQLite
import Glibc

/// The space in the database file.
struct FileSpace: Equatable {
  /// The length to which SQLite truncates its log, in bytes: some thousand commands.
  static let logLimit = 16 << 20
  static let logBound = 64 << 20
  /// The minimum number of pages that are kept free: 4 MiB. A quarter of the pages in use is kept free if that is more.
  private static let minFreePages = 1024
  /// The free space of a file system that counts as room for records again.
  static let minFree = 1 << 20

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

enum LogCheckpoint {
  enum Outcome: Equatable { case emptied, heldByReader, failed(Int32) }

  /// Moves the log into the database and truncates it. A process that reads an old state makes it fail.
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
