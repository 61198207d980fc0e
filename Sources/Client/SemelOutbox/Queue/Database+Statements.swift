import GRDB

/// The queue's statements, which are compiled once for each connection: that is half the time of a short transaction.
extension Database {
  func run(sql: String, arguments: StatementArguments = StatementArguments()) throws {
    try cachedStatement(sql: sql).execute(arguments: arguments)
  }

  func row(sql: String, arguments: StatementArguments = StatementArguments()) throws -> Row? {
    try Row.fetchOne(try cachedStatement(sql: sql), arguments: arguments)
  }

  func rows(sql: String, arguments: StatementArguments = StatementArguments()) throws -> [Row] {
    try Row.fetchAll(try cachedStatement(sql: sql), arguments: arguments)
  }

  func value<Value: DatabaseValueConvertible>(
    _ type: Value.Type, sql: String, arguments: StatementArguments = StatementArguments()
  ) throws -> Value? {
    try Value.fetchOne(try cachedStatement(sql: sql), arguments: arguments)
  }
}
