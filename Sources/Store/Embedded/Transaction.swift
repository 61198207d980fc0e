import GRDB
import Idempotency

/// The failure of a transaction.
enum TransactionError: Error, Equatable {
  /// The transaction was certainly rolled back.
  case rolledBack(SQLError)
  /// The commit itself failed. Recovery of the log may find its last write after a crash before the next commit.
  case commitFailed(SQLError)

  var isOfOneCommand: Bool {
    switch self {
    case .rolledBack(let error): !error.isOfDevice
    case .commitFailed: false
    }
  }

  var isOfDevice: Bool {
    switch self {
    case .rolledBack(let error), .commitFailed(let error): error.isOfDevice
    }
  }

  var isFull: Bool {
    switch self {
    case .rolledBack(let error), .commitFailed(let error): error.isFull
    }
  }

  var text: String {
    switch self {
    case .rolledBack(let error), .commitFailed(let error): error.text
    }
  }

  /// The failure for those who sent the commands. Only damage to the record itself makes it unreadable: the command may
  /// succeed later, and an outcome must not be given up.
  var storeError: StoreError {
    switch self {
    case .rolledBack(let error) where error.isCorrupt && error.isOfReading: .unreadable(error.text)
    case .rolledBack(let error): .unavailable(error.text)
    case .commitFailed(let error): .fateUnknown(error.text)
    }
  }
}

final class Transaction {
  private let begin: SQLStatement
  private let commit: SQLStatement
  private let rollback: SQLStatement

  init(_ database: Database) throws {
    begin = try SQLStatement(database, "BEGIN IMMEDIATE")
    commit = try SQLStatement(database, "COMMIT")
    rollback = try SQLStatement(database, "ROLLBACK")
  }

  /// Runs the body as one transaction. A transaction that writes nothing does not wait for the disk.
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
      // If the disk is full, the commit mark that makes the log's frames valid was never written.
      throw error.isFull ? .rolledBack(error) : .commitFailed(error)
    }
  }

  private func abandon() {
    // Fails if SQLite has already rolled back, as it does after most disk errors.
    try? rollback.run()
  }
}
