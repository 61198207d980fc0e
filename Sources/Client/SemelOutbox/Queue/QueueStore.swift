import Foundation
import GRDB
import HTTPTypes
import SemelClient

/// The queue in the database. Each function is one step of a transaction that its caller owns.
struct QueueStore: Sendable {
  let policy: Policy
  let limits: QueueLimits
  let seal: (any BodySeal)?
  let environment: ClientEnvironment
  let leaseClock: LeaseClock
  /// The name of this queue object, which owns the leases that it takes.
  let owner: String
  let leaseDuration: Duration
  /// Called in the transaction that ends intents.
  let didEnd: @Sendable (Database, [End]) throws -> Void

  /// The end of an intent. It has no name if something else has damaged the key in its row.
  struct End: Sendable {
    let intent: QueuedIntent?
    let outcome: QueuedOutcome
  }

  /// The time of the wall clock, in milliseconds since 1970.
  var now: Int64 { Self.milliseconds(environment.now()) }

  /// The milliseconds of a date, at most those of 30,000 years.
  static func milliseconds(_ date: Date) -> Int64 {
    Int64(min(max((date.timeIntervalSince1970 * 1000).rounded(), -1e15), 1e15))
  }

  static func date(_ milliseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

  /// The members of an entry besides its request.
  struct Options {
    var group: String?
    var rule = GroupRule.proceed
    var once: String?
    var coalesces = false
    var values: [ResponseValue] = []
  }

  /// An error undoes this step alone, so that the application may go on with its transaction.
  func enqueue(_ request: IntentRequest, _ options: Options, in db: Database) throws -> QueuedIntent {
    try validate(request)
    if let once = options.once, let row = try row("once = ?", [once], in: db) {
      guard try isTap(request, on: row, in: db) else { throw OutboxError.onceMismatch(try name(row)) }
      return try name(row)
    }
    let open = try db.value(Int.self, sql: "SELECT count FROM semel_open") ?? 0
    guard open < limits.maxOpen else { throw OutboxError.queueFull }
    var queued: QueuedIntent?
    try db.inSavepoint {
      queued = try add(request, options, in: db)
      return .commit
    }
    guard let queued else { preconditionFailure("The step neither ended nor failed.") }
    return queued
  }

  /// Whether a request is that of a row, which has had the values of earlier responses put into it since.
  private func isTap(_ request: IntentRequest, on row: Row, in db: Database) throws -> Bool {
    let stored = try stored(row).request
    if stored == request { return true }
    let values = try db.rows(
      sql: "SELECT name, value FROM semel_value WHERE intent = ? AND value IS NOT NULL",
      arguments: [row["id"] as Int64])
    let literals = Dictionary(
      uniqueKeysWithValues: values.map { ($0["name"] as String, $0["value"] as String) })
    return stored == ValueSubstitution.apply(literals, to: request)
  }

  private func add(_ request: IntentRequest, _ options: Options, in db: Database) throws -> QueuedIntent {
    let queued = try insert(request, options, in: db)
    for value in options.values { try insert(value, of: queued.id, in: db) }
    if options.coalesces { try coalesce(queued.id, request, in: db) }
    try admit(queued.id, in: db)
    return queued
  }

  private func validate(_ request: IntentRequest) throws {
    if let name = request.credentialField { throw OutboxError.credentialInRequest(name.rawName) }
    guard request.hasValidPath else { throw OutboxError.invalidPath(request.path) }
    switch request.body {
    case .none: break
    case .bytes(let bytes):
      if bytes.count > limits.maxBody { throw OutboxError.bodyTooLarge(bytes.count) }
    case .file(let path):
      guard let size = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int else {
        throw OutboxError.unreadableBody(path)
      }
      if size > policy.maxRequestBody { throw OutboxError.bodyTooLarge(size) }
    }
  }

  private func insert(_ request: IntentRequest, _ options: Options, in db: Database) throws -> QueuedIntent {
    let key = IntentKey(at: environment.now(), random: environment.random)
    var (body, file): (Data?, String?) = (nil, nil)
    switch request.body {
    case .none: break
    case .bytes(let bytes): body = try sealed(bytes, key)
    case .file(let path): file = path
    }
    let now = now
    try db.run(
      sql: """
        INSERT INTO semel_intent
          (key, once, grp, rule, object, method, path, fields, body, body_file, is_sealed, state, due_at, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)
        """,
      arguments: [
        key.rawValue, options.once, options.group, options.rule.rawValue,
        options.coalesces ? request.path : nil,
        request.method.rawValue, request.path, try Self.json(request.fields), body, file, seal != nil, now,
        now,
      ])
    return QueuedIntent(id: db.lastInsertedRowID, key: key)
  }

  private func insert(_ value: ResponseValue, of id: Int64, in db: Database) throws {
    try db.run(
      sql: "INSERT INTO semel_value (intent, name, source, pointer) VALUES (?, ?, ?, ?)",
      arguments: [id, value.name, value.source.id, value.pointer])
    guard let source = try row("id = ?", [value.source.id], in: db) else { throw OutboxError.notFound }
    guard let outcome = try outcome(source) else { return }
    for (failed, reason) in try pass(outcome, of: value.source.id, in: db) { try end(failed, reason, in: db) }
  }

  private func coalesce(_ id: Int64, _ request: IntentRequest, in db: Database) throws {
    let older = try db.rows(
      sql: """
        SELECT id, method FROM semel_intent
        WHERE object = ? AND id < ? AND state < 2 AND deliveries = 0 ORDER BY id
        """, arguments: [request.path, id])
    for row in older {
      let other: Int64 = row["id"]
      let method = HTTPRequest.Method(rawValue: row["method"]) ?? .get
      switch QueueRules.coalescing(older: method, newer: request.method) {
      case .keepBoth: continue
      case .dropOlder: try end(other, .cancelled(.replaced(id)), in: db)
      case .dropNewer:
        try end(id, .cancelled(.replaced(other)), in: db)
        return
      }
    }
  }

  /// Lets an intent be sent if it is the first of its group, the group is not held, and no value of it is missing.
  func admit(_ id: Int64, in db: Database) throws {
    try db.run(
      sql: """
        UPDATE semel_intent SET state = 1
        WHERE id = ? AND state = 0
          AND (grp IS NULL OR (
            id = (SELECT min(id) FROM semel_intent AS other WHERE other.grp = semel_intent.grp AND other.state < 3)
            AND NOT EXISTS (SELECT 1 FROM semel_held_group AS held WHERE held.grp = semel_intent.grp)))
          AND NOT EXISTS (SELECT 1 FROM semel_value WHERE intent = semel_intent.id AND value IS NULL)
        """, arguments: [id])
  }

  func admitFirst(of group: String, in db: Database) throws {
    let first = try db.value(
      Int64.self, sql: "SELECT min(id) FROM semel_intent WHERE grp = ? AND state < 3", arguments: [group])
    if let first { try admit(first, in: db) }
  }

  func resume(group: String, in db: Database) throws {
    try db.run(sql: "DELETE FROM semel_held_group WHERE grp = ?", arguments: [group])
    try admitFirst(of: group, in: db)
  }
}
