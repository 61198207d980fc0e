import Idempotency

/// The count of open records, which all nodes on one Redis share under two keys that expire. Safe to use from any task.
public struct RedisOpenRecordBoard: OpenRecordBoard {
  private static let wishSpan = Milliseconds.seconds(86_400)

  private let store: RedisStore

  public init(_ store: RedisStore) { self.store = store }

  public func lastCount() async throws(StoreError) -> String? {
    try await store.reply(to: ["GET", store.keys.census]).text
  }

  public func takeTurn(_ token: OwnerToken, for span: Milliseconds) async throws(StoreError) -> Bool {
    let (turn, own) = (store.keys.censusTurn, "\(token.high) \(token.low)")
    if try await store.reply(to: ["SET", turn, own, "NX", "PX", "\(span.count)"]).text != nil { return true }
    guard try await store.reply(to: ["GET", turn]).text == own else { return false }
    _ = try await store.reply(to: ["PEXPIRE", turn, "\(span.count)"])
    return true
  }

  public func wishRepair() async throws(StoreError) {
    _ = try await store.reply(to: ["SET", store.keys.repairWish, "1", "PX", "\(Self.wishSpan.count)"])
  }

  public func takeRepairWish() async throws(StoreError) -> Bool {
    guard try await store.reply(to: ["GET", store.keys.repairWish]).text != nil else { return false }
    _ = try await store.reply(to: ["DEL", store.keys.repairWish])
    return true
  }

  public func post(_ count: String, for span: Milliseconds) async throws(StoreError) {
    _ = try await store.reply(to: ["SET", store.keys.census, count, "PX", "\(span.count)"])
  }
}
