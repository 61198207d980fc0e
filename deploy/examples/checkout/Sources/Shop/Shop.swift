import Foundation
import GRDB
import HTTPTypes
public import SemelClient
public import SemelOutbox
import SemelURLSession

/// The shop's own database, and the queue in it. Each process that sends opens both, since whichever ends an intent
/// also changes the purchase.
public struct Shop: Sendable {
  private let database: DatabasePool
  public let outbox: Outbox

  private struct Order: Encodable { let item: String }
  private struct Receipt: Decodable { let id: String }

  public init(file: String, origin: Origin) async throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(5)
    // An order is on the disk before it is sent, also if the power fails.
    configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA synchronous = FULL") }
    database = try DatabasePool(path: file, configuration: configuration)
    try await database.write { db in
      try db.execute(
        sql:
          "CREATE TABLE IF NOT EXISTS purchase (item TEXT PRIMARY KEY, intent INTEGER, state TEXT, number TEXT)"
      )
    }
    var settings = Outbox.Settings()
    settings.onEnd = Self.finish
    outbox = try await Outbox(
      database: database, origin: origin, transport: .urlSession(), credentials: AliceToken(),
      settings: settings)
  }

  /// Buys an item once: the purchase and its intent are written together, and a second tap finds the first.
  public func buy(_ item: String) async throws {
    let request = try IntentRequest.post("/v1/orders", json: Order(item: item))
    try await database.write { [outbox] db in
      let intent = try outbox.enqueue(request, group: "checkout", once: "buy-\(item)", in: db)
      try db.execute(
        sql: "INSERT OR IGNORE INTO purchase (item, intent, state) VALUES (?, ?, 'confirming')",
        arguments: [item, intent.id])
    }
  }

  /// Sends until each purchase has its end.
  public func confirmAll() async throws {
    let running = Task { [outbox] in try await outbox.run() }
    defer { running.cancel() }
    for intent in try await openPurchases() { _ = try await outbox.outcome(of: intent) }
  }

  private func openPurchases() async throws -> [QueuedIntent] {
    try await database.read { db in
      let sql = """
        SELECT intent, key FROM purchase JOIN semel_intent ON id = intent WHERE purchase.state = 'confirming'
        """
      return try Row.fetchAll(db, sql: sql).compactMap { row in
        IntentKey(row["key"]).map { QueuedIntent(id: row["intent"], key: $0) }
      }
    }
  }

  /// What the user sees changes in the transaction that ends the intent.
  @Sendable private static func finish(_ db: Database, _ intent: QueuedIntent, _ outcome: QueuedOutcome)
    throws
  {
    let (state, number): (String, String?) =
      switch outcome {
      case .completed(let response, _):
        ("confirmed", try? JSONDecoder().decode(Receipt.self, from: Data(response.body)).id)
      case .rejected: ("refused", nil)
      case .unknown: ("not known, we look into it", nil)
      case .expired, .cancelled: ("not ordered", nil)
      }
    try db.execute(
      sql: "UPDATE purchase SET state = ?, number = ? WHERE intent = ?",
      arguments: [state, number, intent.id])
  }

  public func receipts() async throws -> [String] {
    try await database.read { db in
      try Row.fetchAll(db, sql: "SELECT item, state, number FROM purchase ORDER BY intent").map { row in
        "\(row["item"] as String): \(row["state"] as String) \(row["number"] as String? ?? "")"
      }
    }
  }
}

/// The user's token. The demo knows a caller by the whole field, so that it must not change while orders are open.
struct AliceToken: CredentialSource {
  func current() -> HTTPFields { [.authorization: "Bearer alice"] }
  func refresh(refused: HTTPFields) -> HTTPFields { current() }
}
