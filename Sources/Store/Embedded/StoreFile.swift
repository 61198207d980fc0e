import GRDB
import Glibc
import Idempotency

/// The opening of the database file: its check, and its upgrade to this version's tables.
enum StoreFile {
  /// The version of the tables that this build writes (`PRAGMA user_version`).
  static let format = 1
  /// "Seml", which distinguishes the file from other programs' databases (`PRAGMA application_id`).
  static let applicationID = 0x53_65_6D_6C

  /// Returns the path with symbolic links resolved, so that one file has one lock under any name, also once deleted.
  static func resolved(_ path: String) -> String {
    var path = path
    // As many links as Linux follows.
    for _ in 0..<40 {
      if let resolved = realpath(path, nil) {
        defer { free(resolved) }
        return String(cString: resolved)
      }
      let parent = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "./"
      guard let target = target(ofLink: path) else { return resolved(last: path, in: parent) }
      path = target.hasPrefix("/") ? target : parent + target
    }
    return path
  }

  /// The contents of a symbolic link; `nil` if the path is none.
  private static func target(ofLink path: String) -> String? {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = buffer.withUnsafeMutableBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) { $0.baseAddress.map { readlink(path, $0, bytes.count) } ?? 0 }
    }
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
  }

  /// The path of a file that is not there, in a folder whose own links are resolved.
  private static func resolved(last path: String, in parent: String) -> String {
    guard let folder = realpath(parent, nil) else { return path }
    defer { free(folder) }
    let name = path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    let text = String(cString: folder)
    return text == "/" ? "/" + name : "\(text)/\(name)"
  }

  struct Opened {
    let queue: DatabaseQueue
    let clock: StoreClock
    let loss: FileLoss?
    /// The point that the file has reached.
    let progress: FileProgress
  }

  /// Opens the file. A file that is refused stays as it is.
  ///
  /// - Parameters:
  ///   - refusesLoss: Whether a file that has lost changes is refused, and a copy that has not run yet.
  ///   - lock: The lock of the file, which has what is noted beside it; `nil` if nothing is.
  static func opened(
    _ path: String, refusesLoss: Bool = false, under lock: FileLock? = nil
  ) throws(EmbeddedStoreError) -> Opened {
    do {
      let queue = try DatabaseQueue(path: path, configuration: configuration())
      return try queue.writeWithoutTransaction { database in
        try prepare(database, path: path)
        let history = try ClockHistory(database)
        let found = try FileProgress(in: database, latest: history.latest)
        let loss = try loss(in: database, found, under: lock)
        if refusesLoss, let loss { throw EmbeddedStoreError.loss(path: path, loss) }
        let noted = lock?.found.progress
        // A copy in a new place has no note by which a kill after the transaction would be known.
        if loss != nil { lock?.keep(noted ?? found) }
        let clock = StoreClock(history: history)
        let now = clock.now()
        let progress = found.next(after: noted, loss: loss, at: now)
        try database.inTransaction(.immediate) {
          try progress.write(to: database)
          try CopyMark.remove(from: database)
          try ClockHistory.begin(clock, at: now, in: database)
          return .commit
        }
        return Opened(queue: queue, clock: clock, loss: loss, progress: progress)
      }
    } catch {
      throw EmbeddedStoreError(error, opening: path)
    }
  }

  private static func loss(
    in database: Database, _ found: FileProgress, under lock: FileLock?
  ) throws -> FileLoss? {
    if let lock, lock.isDatabaseGone { return .gone }
    if let madeAt = try CopyMark.read(in: database) { return .copy(madeAt: madeAt) }
    return lock?.found.progress.flatMap { found.hasLoss(since: $0) ? .behind : nil }
  }

  private static func configuration() -> Configuration {
    var configuration = Configuration()
    configuration.label = "semel.store"
    // An operator with the sqlite3 shell may lock the file for a moment.
    configuration.busyMode = .timeout(5)
    return configuration
  }

  private static func prepare(_ database: Database, path: String) throws {
    let (found, isEmpty) = try checkFormat(database, path: path)
    // Takes effect only in a file without tables.
    if isEmpty { try database.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL") }
    guard try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL") == "wal" else {
      throw EmbeddedStoreError.cannotOpen(path: path, reason: "its file system has no write-ahead log")
    }
    // A commit returns once the log is on the disk: neither kill -9 nor a power cut loses an acknowledged change.
    try database.execute(sql: "PRAGMA synchronous = FULL")
    // 16 MiB of pages, because IDs are random and every command needs another page.
    try database.execute(sql: "PRAGMA cache_size = -16384")
    _ = try Int.fetchOne(database, sql: "PRAGMA journal_size_limit = \(FileSpace.logLimit)")
    try createTables(database, found: found)
  }

  /// Returns the format of the file, 0 for none, and whether it has no tables.
  private static func checkFormat(
    _ database: Database, path: String
  ) throws -> (found: Int, isEmpty: Bool) {
    let found = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    let application = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
    let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master") == 0
    guard application == applicationID || (application == 0 && found == 0 && isEmpty) else {
      throw EmbeddedStoreError.foreignDatabase(path: path)
    }
    guard found <= format else {
      throw EmbeddedStoreError.newerFormat(path: path, found: found, known: format)
    }
    return (found, isEmpty)
  }

  private static func createTables(_ database: Database, found: Int) throws {
    if found < format {
      try database.inTransaction(.immediate) {
        try database.execute(sql: schema)
        try database.execute(sql: "PRAGMA application_id = \(applicationID)")
        try database.execute(sql: "PRAGMA user_version = \(format)")
        return .commit
      }
    }
    // Files of the first builds lack this table. Those builds ignore it.
    try database.execute(sql: factSchema)
    // The index is missing if an earlier version died while it replaced a damaged one.
    try database.execute(sql: "CREATE INDEX IF NOT EXISTS record_sweep ON record (sweep_at)")
    try add(clockColumns, to: "clock", unless: "high", database)
    try add(["origin TEXT"], to: "record", unless: "origin", database)
  }

  /// Adds columns to a table of an earlier build, which ignores them.
  private static func add(
    _ columns: [String], to table: String, unless present: String, _ database: Database
  ) throws {
    let found = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info('\(table)')")
    guard !found.contains(present) else { return }
    try database.inTransaction(.immediate) {
      for column in columns { try database.execute(sql: "ALTER TABLE \(table) ADD COLUMN \(column)") }
      return .commit
    }
  }

  static let factSchema =
    "CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"

  private static let clockColumns = [
    "high INTEGER NOT NULL DEFAULT 0",  // see ClockHistory
    "machine TEXT",  // of earlier versions, as is the next one
    "counted_from INTEGER",
  ]

  /// Times are milliseconds since 1970, durations milliseconds.
  private static let schema = """
    CREATE TABLE record (
      id BLOB PRIMARY KEY, format INTEGER NOT NULL, state INTEGER NOT NULL, attempt INTEGER NOT NULL,
      kept_until INTEGER NOT NULL,  -- from here on as good as absent
      sweep_at INTEGER NOT NULL,    -- the sweeper's next look at it
      owner BLOB, recipe TEXT, digest BLOB, first_seen INTEGER, flags INTEGER,
      unknown_retention INTEGER, remember INTEGER,
      at INTEGER,                   -- end of the lease, loss, or completion, by state
      expires_at INTEGER,
      status INTEGER,               -- of an open record, the number of attempts that were not sent, or null
      location TEXT,
      response INTEGER,             -- its row in response
      origin TEXT                   -- see Attribution
    ) WITHOUT ROWID;
    CREATE INDEX record_sweep ON record (sweep_at);
    CREATE TABLE response (
      number INTEGER PRIMARY KEY, fields BLOB NOT NULL, body BLOB NOT NULL, trailers BLOB NOT NULL
    );
    CREATE TABLE clock (
      number INTEGER PRIMARY KEY CHECK (number = 1),
      latest INTEGER NOT NULL       -- the time of the last change
    );
    INSERT INTO clock VALUES (1, 0);
    """
}
