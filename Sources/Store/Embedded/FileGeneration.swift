import FoundationEssentials
import GRDB
import Idempotency
import Platform
import Wire

/// The mark of a copy, by which its first start notices that keys may be missing which came after it was made.
///
/// It is a fact of the file. The first start takes it away, and begins the next generation, in which the attempt
/// numbers of new claims begin higher than any before: they fence off owners whose records the copy lacks. A copy that
/// was made by other means has no mark. It is noticed if it is older than the time that is noted beside the file
/// (`LockNote`). The generation is noted there, too, for a database that is made anew in its place.
enum CopyMark {
  private static let time = "copied_at"
  private static let generation = "generation"
  /// As in Redis: attempt numbers have 14 digits at most.
  static let maxGeneration = 9999

  /// The file's generation, and the copy that it was until this start.
  struct Found {
    var generation: Int
    /// The time at which the copy was made, in milliseconds since 1970; `nil` if the file has run before.
    var copiedAt: Int64?
  }

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

  /// Reads the generation. Begins the next one if the file is a copy that has not run, or has lost changes.
  ///
  /// - Parameters:
  ///   - minGeneration: The generation that the file takes over if its own is below it.
  ///   - isBehind: Whether the file is older than it has been at this path.
  ///   - refusesLoss: Whether such a file is refused instead, and stays as it is.
  static func take(
    from database: Database, path: String, minGeneration: Int, isBehind: Bool, refusesLoss: Bool
  ) throws -> Found {
    let copiedAt = try number(time, in: database)
    if refusesLoss {
      if let copiedAt { throw EmbeddedStoreError.copy(path: path, madeAt: copiedAt) }
      if isBehind { throw EmbeddedStoreError.databaseBehind(path: path) }
    }
    let isNext = copiedAt != nil || isBehind
    let written = try number(Self.generation, in: database) ?? 0
    var generation = min(max(written, Int64(minGeneration)), Int64(maxGeneration))
    if isNext { generation = min(generation + 1, Int64(maxGeneration)) }
    invariant(
      0...Int64(maxGeneration) ~= generation, "attempt numbers begin with more digits than any store takes")
    guard isNext || generation != written else { return Found(generation: Int(generation)) }
    try database.inTransaction(.immediate) {
      try database.execute(
        sql: "INSERT OR REPLACE INTO fact VALUES (?, ?)", arguments: [Self.generation, "\(generation)"])
      try database.execute(sql: "DELETE FROM fact WHERE name = ?", arguments: [time])
      return .commit
    }
    return Found(generation: Int(generation), copiedAt: copiedAt)
  }

  /// The time of a copy as text, in whole seconds of UTC.
  static func text(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds / 1000)).ISO8601Format()
  }

  private static func number(_ name: String, in database: Database) throws -> Int64? {
    try String.fetchOne(database, sql: "SELECT value FROM fact WHERE name = ?", arguments: [name])
      .flatMap { Int64($0) }
  }
}
