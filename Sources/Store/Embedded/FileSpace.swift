import GRDB
import GRDBSQLite

/// Bounds of the store's files: space that is free goes back to the system, and the log does not grow for ever.
struct FileSpace: Equatable {
  /// The length to which SQLite cuts its log once all of it is in the database: some thousand commands.
  static let logLimit = 16 << 20
  /// The length of the log from which it is emptied by force, and the operator is warned where that fails.
  static let logBound = 64 << 20
  /// The largest content of a file that is rebuilt at a start, for the sake of `auto_vacuum`: half a second.
  private static let rebuildBound = 64 << 20
  /// Pages that are kept free for what comes next: 4 MiB, and a quarter of those in use.
  private static let minFreePages = 1024

  var pages: Int
  var freePages: Int

  /// Pages to be given back.
  var excessPages: Int { max(0, freePages - max(Self.minFreePages, (pages - freePages) / 4)) }

  /// Sets the limits of a connection, and rebuilds a small file of the first builds, which cannot shrink.
  /// Advice for the operator where the file is not small.
  static func prepare(_ database: Database, path: String) throws -> String? {
    _ = try Int.fetchOne(database, sql: "PRAGMA journal_size_limit = \(logLimit)")
    let incremental = 2
    guard try Int.fetchOne(database, sql: "PRAGMA auto_vacuum") != incremental else { return nil }
    let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
    let free = try Int.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0
    let size = try Int.fetchOne(database, sql: "PRAGMA page_size") ?? 0
    if (pages - free) * size <= rebuildBound {
      do {
        try database.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
        try database.execute(sql: "VACUUM")
        return nil
      } catch {
        // No room for a copy, or somebody reads the file: it works as it is.
      }
    }
    return "store \(path): the file was made by an earlier version and cannot shrink; to let it, stop Semel "
      + "once and run sqlite3 \(path) 'PRAGMA auto_vacuum = INCREMENTAL; VACUUM'"
  }
}

/// Empties SQLite's log by force.
enum LogCheckpoint {
  enum Outcome: Equatable { case emptied, heldByReader, failed(Int32) }

  /// Moves the log into the database and cuts it. Waits for nobody: one who reads an old state holds it up.
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
