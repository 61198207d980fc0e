import GRDB
import GRDBSQLite
import Glibc
import Idempotency
import Platform

/// A consistent copy of the embedded store's file, made while a process uses it.
public enum EmbeddedCopy {
  private static let pagesPerStep: CInt = 1024

  /// Copies the store by SQLite's online backup, in one transaction: the copy is the store at one moment.
  ///
  /// - Parameters:
  ///   - target: The path of the copy, where there must be no file. It is readable by its owner only.
  ///   - progress: Called after each step, with the copied part, from 0 to 1.
  /// - Returns: The size of the copy in bytes.
  public static func make(
    ofFile path: String, to target: String, progress: @escaping (Double) -> Void = { _ in }
  ) throws(EmbeddedStoreError) -> Int {
    try make(ofFile: path, to: target, progress: progress, sync: { fsync($0) })
  }

  /// - Parameter sync: `fsync`, in whose place a test puts a disk that fails.
  static func make(
    ofFile path: String, to target: String, pagesPerStep: CInt = pagesPerStep,
    progress: @escaping (Double) -> Void = { _ in }, sync: (Int32) -> Int32
  ) throws(EmbeddedStoreError) -> Int {
    let source = try opened(path)
    let descriptor = open(target, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw .cannotCopy(target: target, reason: String(cString: strerror(errno)))
    }
    defer { _ = close(descriptor) }
    do {
      let copy = try DatabaseQueue(path: target)
      try copyPages(of: source, to: copy, pagesPerStep, progress)
      try CopyMark.put(on: copy)
      try copy.close()
      try source.close()
    } catch {
      _ = unlink(target)
      // GRDB's text is that of the connection, which knows nothing of a failed copy.
      let code = (error as? DatabaseError)?.extendedResultCode.rawValue
      throw .cannotCopy(
        target: target, reason: code.map { String(cString: sqlite3_errstr($0)) } ?? "\(error)")
    }
    if let code = errorCode(sync(descriptor)) ?? directoryErrorCode(of: target, sync) {
      // It looks whole, and a power failure may leave less of it.
      _ = unlink(target)
      throw .cannotCopy(target: target, reason: String(cString: strerror(code)))
    }
    return FilePresence.length(of: target)
  }

  /// Copies all pages as they are at the beginning: the first statement begins a transaction that keeps them.
  private static func copyPages(
    of source: DatabaseQueue, to copy: DatabaseQueue, _ pagesPerStep: CInt,
    _ progress: @escaping (Double) -> Void
  ) throws {
    try copy.writeWithoutTransaction { target in
      try source.read { database in
        _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema")
        try database.backup(to: target, pagesPerStep: pagesPerStep) { done in
          progress(Double(done.completedPageCount) / Double(max(1, done.totalPageCount)))
        }
      }
    }
  }

  /// Writes the entry of a file in its directory to the disk. Returns the error's number, or `nil`.
  private static func directoryErrorCode(of path: String, _ sync: (Int32) -> Int32) -> Int32? {
    let end = path.lastIndex(of: "/")
    let directory = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let descriptor = open(directory, O_RDONLY | O_CLOEXEC)
    // A directory of which only the owner may see the content cannot be opened by others.
    guard descriptor >= 0 else { return errno == EACCES ? nil : errno }
    defer { _ = close(descriptor) }
    let code = errorCode(sync(descriptor))
    // Some file systems have nothing to write for a directory.
    return code == EINVAL ? nil : code
  }

  private static func errorCode(_ result: Int32) -> Int32? { result == 0 ? nil : errno }

  static func opened(_ path: String) throws(EmbeddedStoreError) -> DatabaseQueue {
    guard FilePresence.length(of: path) > 0 else {
      throw .cannotOpen(path: path, reason: "there is no such file, or it is empty")
    }
    do {
      var configuration = Configuration()
      configuration.readonly = true
      configuration.busyMode = .timeout(5)
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      let application = try queue.read { try Int.fetchOne($0, sql: "PRAGMA application_id") }
      guard application == StoreFile.applicationID else {
        throw EmbeddedStoreError.foreignDatabase(path: path)
      }
      return queue
    } catch {
      throw EmbeddedStoreError(error, opening: path)
    }
  }
}

/// The facts of the namespace in the embedded store's file.
public enum EmbeddedFacts {
  /// A fact's value; `nil` if it has none, or there is no file yet.
  public static func value(
    of fact: NamespaceFact, inFile path: String
  ) throws(EmbeddedStoreError) -> String? {
    guard FilePresence.length(of: path) > 0 else { return nil }
    let queue = try EmbeddedCopy.opened(path)
    do {
      let value = try queue.read {
        try String.fetchOne($0, sql: "SELECT value FROM fact WHERE name = ?", arguments: [fact.name])
      }
      try queue.close()
      return value
    } catch {
      throw .cannotOpen(path: path, reason: "\(error)")
    }
  }
}

/// The number of records in the embedded store's file by their states, and its size.
public struct EmbeddedStatistics: Sendable {
  /// The records of each state. A lapsed lease counts as unknown, a record that waits to be swept as `ended`.
  public let states: [(name: String, count: Int)]
  /// The bytes of all recorded responses.
  public let responseBytes: Int
  public let fileBytes: Int
  /// The bytes of unused pages.
  public let freeBytes: Int
  /// The bytes of the write-ahead log.
  public let logBytes: Int

  /// Counts while a process may use the file.
  public init(ofFile path: String) throws(EmbeddedStoreError) {
    let queue = try EmbeddedCopy.opened(path)
    do {
      let found = try queue.read { database in
        (
          counts: try Row.fetchAll(database, sql: Self.counting, arguments: [WallClock.milliseconds()]),
          responses: try Int.fetchOne(
            database,
            sql: "SELECT sum(length(fields) + length(body) + length(trailers)) FROM response") ?? 0,
          free: try Int.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0,
          page: try Int.fetchOne(database, sql: "PRAGMA page_size") ?? 0
        )
      }
      var counts: [String: Int] = [:]
      for row in found.counts { counts[row[0]] = row[1] }
      states = Self.names.map { ($0, counts[$0] ?? 0) }
      responseBytes = found.responses
      freeBytes = found.free * found.page
      try queue.close()
    } catch {
      throw .cannotOpen(path: path, reason: "\(error)")
    }
    fileBytes = FilePresence.length(of: path)
    logBytes = FilePresence.length(of: path + "-wal")
  }

  private static let names = [
    "in_flight", "unknown", "released", "completed", "expired", "fence", "ended", "unreadable",
  ]

  /// The numbers are those of `RecordTable`. The wall clock may differ from the store's.
  private static let counting = """
    SELECT CASE
      WHEN kept_until <= ?1 THEN 'ended'
      WHEN format NOT IN (1, 2) THEN 'unreadable'
      WHEN state = 1 THEN CASE WHEN at > ?1 THEN 'in_flight' ELSE 'unknown' END
      WHEN state = 2 THEN 'unknown'
      WHEN state = 3 THEN 'released'
      WHEN state = 4 THEN CASE WHEN expires_at > ?1 THEN 'completed' ELSE 'expired' END
      WHEN state = 5 THEN 'expired'
      WHEN state = 6 THEN 'fence'
      ELSE 'unreadable' END AS name, count(*)
    FROM record GROUP BY name
    """
}
