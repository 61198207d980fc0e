import Foundation
import GRDB
import HTTPTypes
import SemelClient

/// The content of a row, and the form in which its parts are stored.
extension QueueStore {
  func row(_ condition: String, _ arguments: StatementArguments, in db: Database) throws -> Row? {
    try db.row(sql: "SELECT * FROM semel_intent WHERE \(condition)", arguments: arguments)
  }

  func name(_ row: Row) throws -> QueuedIntent {
    QueuedIntent(id: row["id"], key: try key(row))
  }

  func key(_ row: Row) throws -> IntentKey {
    guard let key = IntentKey(row["key"]) else { throw OutboxError.unreadableIntent("It has no valid key.") }
    return key
  }

  /// The intent as it was enqueued.
  func stored(_ row: Row) throws -> Intent {
    let key = try key(row)
    guard let method = HTTPRequest.Method(row["method"]) else {
      throw OutboxError.unreadableIntent("It has no method.")
    }
    var request = IntentRequest(
      method: method, path: row["path"], fields: try Self.value(HTTPFields.self, row["fields"]) ?? [:])
    if let data: Data = row["body"] {
      request.body = .bytes(row["is_sealed"] ? try opened(data, key) : [UInt8](data))
    } else if let path: String = row["body_file"] {
      request.body = .file(path)
    }
    return Intent(key: key, request: request)
  }

  func progress(_ row: Row) -> IntentProgress {
    var progress = IntentProgress(createdAt: Self.date(row["created_at"]))
    progress.deliveries = row["deliveries"]
    progress.attempts = row["attempts"]
    progress.failures = row["failures"]
    progress.mayHaveRun = row["may_have_run"]
    progress.firstSentAt = (row["first_sent_at"] as Int64?).map(Self.date)
    progress.expires = (row["expires"] as Int64?).map(Self.date)
    return progress
  }

  /// The end of an intent, if it has one.
  func outcome(_ row: Row) throws -> QueuedOutcome? {
    guard let ending: String = row["ending"] else { return nil }
    switch ending {
    case "completed": return .completed(try response(row), wasReplayed: row["was_replayed"] ?? false)
    case "rejected": return .rejected(try response(row))
    case "unknown": return .unknown(try Self.value(Problem.self, row["detail"]))
    case "expired": return .expired
    case "cancelled":
      return .cancelled(try Self.value(Cancellation.self, row["detail"]) ?? .requested)
    default: throw OutboxError.unreadableIntent("It has the ending \(ending).")
    }
  }

  private func response(_ row: Row) throws -> Response {
    guard let head = try Self.value(HTTPResponse.self, row["response_head"]) else {
      throw OutboxError.unreadableIntent("It has an outcome without a response.")
    }
    guard let data: Data = row["response_body"] else { return Response(head) }
    return Response(head, body: row["is_sealed"] ? try opened(data, try key(row)) : [UInt8](data))
  }

  func sealed(_ bytes: [UInt8], _ key: IntentKey) throws -> Data {
    guard let seal else { return Data(bytes) }
    do { return Data(try seal.seal(bytes, key: key)) } catch { throw OutboxError.unreadableBody("\(error)") }
  }

  private func opened(_ data: Data, _ key: IntentKey) throws -> [UInt8] {
    guard let seal else { throw OutboxError.unreadableBody("The body is sealed, and the queue has no seal.") }
    do { return try seal.open([UInt8](data), key: key) } catch {
      throw OutboxError.unreadableBody("\(error)")
    }
  }

  static func json(_ value: some Encodable) throws -> String {
    String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
  }

  static func value<Value: Decodable>(_ type: Value.Type, _ text: String?) throws -> Value? {
    do {
      return try text.map { try JSONDecoder().decode(type, from: Data($0.utf8)) }
    } catch {
      throw OutboxError.unreadableIntent("\(error)")
    }
  }
}

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
