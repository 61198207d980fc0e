import GRDB
import Idempotency

/// Why an entry could not be read.
enum TableError: Error, Equatable {
  case sql(SQLError)
  /// The row is there, and this build does not know what it says.
  case unreadable(String)
}

/// Entries as rows of the database. Used by the writer alone, inside its transactions.
final class RecordTable {
  /// The format of the rows that this build writes and reads.
  static let format: Int64 = 1

  /// The `state` of a row.
  enum State: Int64 { case inFlight = 1, unknown, released, completed, tombstone, fence }

  /// The bits of a row's `flags`; above them stands the end of the fence that the record carries, in milliseconds.
  enum Flag {
    static let fenceShift: Int64 = 8
    static let followsUnknown: Int64 = 1
    static let onlyRejectedSoFar: Int64 = 2
  }

  /// An entry, and the row of the answer that belongs to it.
  struct Found {
    var entry: StoredEntry?
    var response: Int64?
    static let nothing = Found(entry: nil, response: nil)
  }

  let statements: RecordStatements
  /// Recipes that were read, by their text: a configuration has a handful.
  var recipes: [String: Recipe] = [:]

  init(_ database: Database) throws { statements = try RecordStatements(database) }

  /// Keeps the time of a change, as the floor of a later start.
  func touch(_ now: StoreInstant) throws(SQLError) {
    statements.updateClock.bind(1, now.milliseconds)
    try statements.updateClock.run()
  }
}
