import GRDB
import Idempotency

/// The failure of a transaction.
struct TransactionError: Error, Equatable {
  let cause: SQLError
  /// Whether the commit itself failed. Recovery of the log may find its last write after a crash before the next commit.
  /// Otherwise the transaction was certainly rolled back.
  let isOfCommit: Bool

  /// Whether commands of the group may succeed when run one by one.
  var isOfOneCommand: Bool { !isOfCommit && !cause.isOfDevice }

  /// The failure for those who sent the commands. Only damage to the record itself makes it unreadable: the command may
  /// succeed later, and an outcome must not be given up.
  var storeError: StoreError {
    if isOfCommit { return .fateUnknown(cause.text) }
    return cause.isCorrupt && cause.isOfReading ? .unreadable(cause.text) : .unavailable(cause.text)
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
      throw TransactionError(cause: error, isOfCommit: false)
    }
    do throws(SQLError) {
      try commit.run()
    } catch {
      abandon()
      // If the disk is full, the commit mark that makes the log's frames valid was never written.
      throw TransactionError(cause: error, isOfCommit: !error.isFull)
    }
  }

  private func abandon() {
    // Fails if SQLite has already rolled back, as it does after most disk errors.
    try? rollback.run()
  }
}
