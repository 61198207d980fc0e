import Idempotency
import Loop

/// The count of open records, which all nodes on one Redis share under two keys that expire by themselves.
///
/// Safe to use from any task; its commands run on the store's loop.
public struct RedisCensus: CensusBoard {
  private let store: RedisStore

  public init(_ store: RedisStore) { self.store = store }

  public func lastCount() async throws(StoreError) -> String? {
    try await ask(["GET", store.keys.census]).text
  }

  public func takeTurn(_ token: OwnerToken, for span: Milliseconds) async throws(StoreError) -> Bool {
    let (turn, own) = (store.keys.censusTurn, "\(token.high) \(token.low)")
    if try await ask(["SET", turn, own, "NX", "PX", "\(span.count)"]).text != nil { return true }
    guard try await ask(["GET", turn]).text == own else { return false }
    _ = try await ask(["PEXPIRE", turn, "\(span.count)"])
    return true
  }

  public func post(_ count: String, for span: Milliseconds) async throws(StoreError) {
    _ = try await ask(["SET", store.keys.census, count, "PX", "\(span.count)"])
  }

  private func ask(_ words: [String]) async throws(StoreError) -> RedisValue {
    let pipeline = store.pipeline
    return try await pipeline.context.run { () async throws(StoreError) -> RedisValue in
      let reply = await withUnsafeContinuation { continuation in
        pipeline.askPlainly(words) { continuation.resume(returning: $0) }
      }
      guard let reply else { throw .fateUnknown("Redis gave no reply") }
      if case .error(let text) = reply { throw RedisRefusal.error(text) }
      return reply
    }
  }
}
