import GRDB
import Idempotency

/// Why a transaction came to nothing, or may have.
enum TransactionError: Error, Equatable {
  /// It was rolled back, for certain.
  case rolledBack(SQLError)
  /// The commit itself failed: its last write may be on the disk, so that a crash before the next commit lets
  /// the log's recovery find it.
  case commitFailed(SQLError)

  /// Whether each command of the group may fare better by itself.
  var isOfOneCommand: Bool {
    switch self {
    case .rolledBack(let error): !error.isOfDevice
    case .commitFailed: false
    }
  }

  /// Whether the connection or the machine under it failed.
  var isOfDevice: Bool {
    switch self {
    case .rolledBack(let error), .commitFailed(let error): error.isOfDevice
    }
  }

  var storeError: StoreError {
    switch self {
    case .rolledBack(let error) where error.isCorrupt: .unreadable(error.text)
    case .rolledBack(let error): .unavailable(error.text)
    case .commitFailed(let error): .fateUnknown(error.text)
    }
  }
}

/// Begins, commits and rolls back.
final class Transaction {
  private let begin: SQLStatement
  private let commit: SQLStatement
  private let rollback: SQLStatement

  init(_ database: Database) throws {
    begin = try SQLStatement(database, "BEGIN IMMEDIATE")
    commit = try SQLStatement(database, "COMMIT")
    rollback = try SQLStatement(database, "ROLLBACK")
  }

  /// Runs the body as one transaction. One that wrote nothing does not touch the disk.
  func run(_ body: () throws(SQLError) -> Void) throws(TransactionError) {
    do throws(SQLError) {
      try begin.run()
      try body()
    } catch {
      abandon()
      throw .rolledBack(error)
    }
    do throws(SQLError) {
      try commit.run()
    } catch {
      abandon()
      // With the disk full, the mark that makes the log's frames count was never written.
      throw error.isFull ? .rolledBack(error) : .commitFailed(error)
    }
  }

  private func abandon() {
    // Fails where SQLite has rolled back by itself, as it does after most errors of the disk.
    try? rollback.run()
  }
}
