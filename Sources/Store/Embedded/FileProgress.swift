import FoundationEssentials
import GRDB
import GRDBSQLite
import Glibc
import Idempotency
import Platform

/// The mark of a copy, a fact of the file, by which its first start notices that later keys may be missing. A copy that
/// was made by other means is noticed if it has come less far than its `LockNote`.
enum CopyMark {
  private static let time = "copied_at"

  /// Marks a copy. One that never ran keeps the mark of the copy that it was made of.
  static func put(on copy: DatabaseQueue) throws {
    try copy.writeWithoutTransaction { database in
      // The copy is one file, whether its owner closed the log or not.
      try database.execute(sql: "PRAGMA journal_mode = DELETE")
      try database.execute(sql: StoreFile.factSchema)
      try database.execute(
        sql: "INSERT OR IGNORE INTO fact VALUES (?, ?)", arguments: [time, "\(WallClock.milliseconds())"])
    }
  }

  static func read(in database: Database) throws -> Int64? { try FileProgress.fact(time, in: database) }

  static func remove(from database: Database) throws {
    try database.execute(sql: "DELETE FROM fact WHERE name = ?", arguments: [time])
  }
}

/// The point that the records at a path have reached. A start writes it to the file in one transaction, and notes it
/// beside the file (`LockNote`) once it has logged what it found. After a kill in between the file is ahead of the
/// note.
struct FileProgress: Equatable, Sendable {
  /// As in Redis: attempt numbers have 14 digits at most.
  static let maxGeneration = 9999

  /// The number of losses that the records have met, which numbers their attempts (`FileLoss`).
  var generation = 0
  /// The number of the start that wrote to the file last; 0 if that was an earlier version.
  var start: Int64 = 0
  /// The time of the last change, in milliseconds since 1970; 0 if there was none.
  var latest: Int64 = 0

  /// Returns whether records are lost: the file has come less far than noted, or has met a loss that was not noted.
  func hasLoss(since noted: FileProgress) -> Bool {
    generation != noted.generation || (start, latest) < (noted.start, noted.latest)
  }

  /// Returns the point that a start reaches at its beginning, after the noted one.
  func next(after noted: FileProgress?, loss: FileLoss?, at now: StoreInstant) -> FileProgress {
    let noted = noted ?? FileProgress()
    var reached = max(generation, noted.generation)
    // A generation that was not noted has no attempts yet, unless the file comes from elsewhere.
    if let loss, loss.isCopy || generation <= noted.generation { reached += 1 }
    return FileProgress(
      generation: min(reached, Self.maxGeneration), start: max(start, noted.start) + 1,
      latest: now.milliseconds)
  }
}

extension FileProgress {
  private static let generationName = "generation"
  private static let startName = "start"

  init(in database: Database, latest: StoreInstant) throws {
    generation = try Int(clamping: Self.fact(Self.generationName, in: database) ?? 0)
    start = try Self.fact(Self.startName, in: database) ?? 0
    self.latest = latest.milliseconds
  }

  func write(to database: Database) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO fact VALUES (?, ?), (?, ?)",
      arguments: [Self.generationName, "\(generation)", Self.startName, "\(start)"])
  }

  fileprivate static func fact(_ name: String, in database: Database) throws -> Int64? {
    try String.fetchOne(database, sql: "SELECT value FROM fact WHERE name = ?", arguments: [name])
      .flatMap { Int64($0) }
  }
}

/// The finding of a start that the database lacks records which it had. It begins the next generation of attempt
/// numbers, which fence off owners whose records are lost.
public enum FileLoss: Equatable, Sendable {
  /// The database was deleted or emptied, and is made anew.
  case gone
  /// The database is older than it has been at this path, or has met a loss that may never have been logged.
  case behind
  /// The database is a copy that has not run yet, made then, in milliseconds since 1970.
  case copy(madeAt: Int64)

  var isCopy: Bool { if case .copy = self { true } else { false } }

  /// The sentence for the log.
  func report(at path: String) -> String {
    switch self {
    case .gone:
      "the database was deleted or emptied since Semel ran last, and is made anew: all recorded outcomes are gone, and "
        + "requests that are retried now run again"
    case .behind:
      "\(Self.isBehind(path)); the newest recorded outcomes are gone, and requests that are retried with their keys run "
        + "again"
    case .copy(let madeAt):
      "the file is a copy of \(Self.text(madeAt)); keys that came after it are forgotten, and requests that are retried "
        + "with them run again"
    }
  }

  func refusal(at path: String) -> String {
    let (finding, remedy, lack) =
      switch self {
      case .gone:
        ("the database was deleted or emptied since Semel ran last", "the file", "all recorded outcomes")
      case .behind: (Self.isBehind(path), "the file with its log", "the newest outcomes")
      case .copy(let madeAt):
        ("a copy of \(Self.text(madeAt)), in which newer keys are missing", "the file itself", "them")
      }
    return "\(finding), and store.require_durable is set: restore \(remedy), or start once with "
      + "require_durable: false to continue without \(lack)"
  }

  private static func isBehind(_ path: String) -> String {
    "the database is older than when Semel ran last: it was deleted and made anew, its log (\(path)-wal) was removed, "
      + "or an earlier copy was put in its place"
  }

  private static func text(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds / 1000)).ISO8601Format()
  }
}

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
