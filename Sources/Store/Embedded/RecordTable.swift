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
  /// The span by which expiry is held back at the moment; `nil`: not at all.
  var hold: ExpiryHold?
  /// Recipes that were read, by their text: a configuration has a handful.
  var recipes: [String: Recipe] = [:]

  init(_ database: Database) throws { statements = try RecordStatements(database) }

  /// Keeps the time of a change, as the floor of a later start.
  func touch(_ clock: StoreClock) throws(SQLError) {
    let now = clock.now()
    // A wall clock in doubt must not become the floor of all later starts.
    let isInDoubt = clock.doubt?.wallIsAhead ?? false
    statements.updateClock.bind(1, (isInDoubt ? clock.expiry() : now).milliseconds)
    statements.updateClock.bind(2, isInDoubt ? now.milliseconds : 0)
    try statements.updateClock.run()
  }

  /// Keeps evidence of how long the store will have been closed, for a start before the machine's next one.
  func anchor(_ clock: StoreClock, to uptime: MachineUptime?) throws(SQLError) {
    if let uptime {
      statements.updateMachine.bind(1, uptime.startID)
      statements.updateMachine.bind(2, (clock.expiry() - uptime.span).milliseconds)
    } else {
      statements.updateMachine.bindNull(1)
      statements.updateMachine.bindNull(2)
    }
    try statements.updateMachine.run()
  }
}
