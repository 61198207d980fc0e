import GRDB
import Idempotency
import Platform

/// The mark of a copy, a fact of the file, by which its first start notices that keys may be missing which came after
/// it was made. That start takes it away.
///
/// A copy that was made by other means has no mark. It is noticed if it is older than the time that is noted beside the
/// file (`LockNote`).
enum CopyMark {
  fileprivate static let time = "copied_at"

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
}

/// The number of losses that the records at a path have met, and of starts that set its time back: a fact of the file,
/// which is noted beside it, too. After either, a copy of before has a smaller number, whatever its times are.
enum FileGeneration {
  private static let name = "generation"
  /// As in Redis: attempt numbers have 14 digits at most.
  static let max = 9999

  /// Returns the loss that the database shows, beyond one that is known before it is opened.
  ///
  /// - Parameter latest: The time of its last change, in milliseconds since 1970.
  static func loss(in database: Database, latest: Int64, note: LockNote) throws -> FileLoss? {
    if let madeAt = try number(CopyMark.time, in: database) { return .copy(madeAt: madeAt) }
    let generation = try number(name, in: database) ?? 0
    return generation < note.generation || latest < note.latest ? .behind : nil
  }

  /// Writes the generation of this start, and returns it.
  ///
  /// - Parameter isNext: Whether the start begins the next one.
  static func take(in database: Database, note: LockNote, isNext: Bool) throws -> Int {
    let written = try number(name, in: database) ?? 0
    let reached = Swift.max(written, Int64(note.generation)) + (isNext ? 1 : 0)
    let generation = min(reached, Int64(max))
    if generation != written {
      try database.execute(
        sql: "INSERT OR REPLACE INTO fact VALUES (?, ?)", arguments: [name, "\(generation)"])
    }
    try database.execute(sql: "DELETE FROM fact WHERE name = ?", arguments: [CopyMark.time])
    return Int(generation)
  }

  private static func number(_ name: String, in database: Database) throws -> Int64? {
    try String.fetchOne(database, sql: "SELECT value FROM fact WHERE name = ?", arguments: [name])
      .flatMap { Int64($0) }
  }
}
