import GRDB
import Idempotency

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The database file: opened, checked, and brought to this version's tables.
enum StoreFile {
  /// The version of the tables that this build writes (`PRAGMA user_version`).
  static let format = 1
  /// "Seml", by which the file is told from other programs' databases (`PRAGMA application_id`).
  static let applicationID = 0x53_65_6D_6C

  /// The path with links resolved, so that one file has one lock whatever it is called.
  static func resolved(_ path: String) -> String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// Opens the file; and the latest time that it tells of.
  static func opened(_ path: String) throws(EmbeddedStoreError) -> (DatabaseQueue, floor: StoreInstant) {
    restrict(path)
    do {
      let queue = try DatabaseQueue(path: path, configuration: configuration())
      let floor = try queue.writeWithoutTransaction { database in
        try prepare(database, path: path)
        return try Int64.fetchOne(database, sql: "SELECT latest FROM clock") ?? 0
      }
      return (queue, StoreInstant(milliseconds: floor))
    } catch let error as EmbeddedStoreError {
      throw error
    } catch let error as DatabaseError {
      if error.resultCode == .SQLITE_NOTADB { throw .notADatabase(path: path) }
      throw .cannotOpen(path: path, reason: error.message ?? "\(error)")
    } catch {
      throw .cannotOpen(path: path, reason: "\(error)")
    }
  }

  /// Makes the file where there is none, readable for its owner alone; SQLite gives its log the same rights.
  private static func restrict(_ path: String) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if descriptor >= 0 { _ = close(descriptor) }
  }

  private static func configuration() -> Configuration {
    var configuration = Configuration()
    configuration.label = "semel.store"
    // Somebody with the sqlite3 shell may hold the file for a moment.
    configuration.busyMode = .timeout(5)
    return configuration
  }

  private static func prepare(_ database: Database, path: String) throws {
    let found = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    let application = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
    let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master") == 0
    guard application == applicationID || (application == 0 && found == 0 && isEmpty) else {
      throw EmbeddedStoreError.foreignDatabase(path: path)
    }
    guard found <= format else {
      throw EmbeddedStoreError.newerFormat(path: path, found: found, known: format)
    }
    guard try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL") == "wal" else {
      throw EmbeddedStoreError.cannotOpen(path: path, reason: "its file system has no write-ahead log")
    }
    // A commit returns once the log is on the disk: neither kill -9 nor a power cut loses what was
    // acknowledged.
    try database.execute(sql: "PRAGMA synchronous = FULL")
    // 16 MiB of pages: ids are random, every command meets another page.
    try database.execute(sql: "PRAGMA cache_size = -16384")
    if found < format {
      try database.inTransaction(.immediate) {
        try database.execute(sql: schema)
        try database.execute(sql: "PRAGMA application_id = \(applicationID)")
        try database.execute(sql: "PRAGMA user_version = \(format)")
        return .commit
      }
    }
    // Files of the first builds lack it, which pass it over where they open one that has it.
    try database.execute(
      sql: "CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
  }

  /// Times are milliseconds since 1970, spans milliseconds. `state` and `format`: see `RecordTable`.
  private static let schema = """
    CREATE TABLE record (
      id BLOB PRIMARY KEY, format INTEGER NOT NULL, state INTEGER NOT NULL, attempt INTEGER NOT NULL,
      kept_until INTEGER NOT NULL,  -- from here on as good as absent
      sweep_at INTEGER NOT NULL,    -- the sweeper's next look at it
      owner BLOB, recipe TEXT, digest BLOB, first_seen INTEGER, flags INTEGER,
      unknown_retention INTEGER, remember INTEGER,
      at INTEGER,                   -- end of the lease, loss, or completion, by state
      expires_at INTEGER, status INTEGER, location TEXT,
      response INTEGER              -- its row in response
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
