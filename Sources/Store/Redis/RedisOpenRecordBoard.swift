import Idempotency

/// The count of open records, which all nodes on one Redis share under two keys that expire. Safe to use from any task.
extension RedisStore: OpenRecordBoard {
  private static var wishSpan: Milliseconds { .seconds(86_400) }

  public func lastCount() async throws(StoreError) -> String? {
    try await reply(to: ["GET", keys.census]).text
  }

  public func takeTurn(_ token: OwnerToken, for span: Milliseconds) async throws(StoreError) -> Bool {
    let (turn, own) = (keys.censusTurn, "\(token.high) \(token.low)")
    if try await reply(to: ["SET", turn, own, "NX", "PX", "\(span.count)"]).text != nil { return true }
    guard try await reply(to: ["GET", turn]).text == own else { return false }
    _ = try await reply(to: ["PEXPIRE", turn, "\(span.count)"])
    return true
  }

  public func wishRepair() async throws(StoreError) {
    _ = try await reply(to: ["SET", keys.repairWish, "1", "PX", "\(Self.wishSpan.count)"])
  }

  public func takeRepairWish() async throws(StoreError) -> Bool {
    guard try await reply(to: ["GET", keys.repairWish]).text != nil else { return false }
    _ = try await reply(to: ["DEL", keys.repairWish])
    return true
  }

  public func post(_ count: String, for span: Milliseconds) async throws(StoreError) {
    _ = try await reply(to: ["SET", keys.census, count, "PX", "\(span.count)"])
  }
}
