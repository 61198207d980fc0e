import GRDB
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
