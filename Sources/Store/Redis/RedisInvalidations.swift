import Idempotency
import Loop

/// The announcements of changed records to all nodes of a namespace on one Redis.
///
/// The scripts announce each change, too, and must not fail where Semel may not publish: only this says that it may not.
/// Safe to use from any task.
public struct RedisInvalidations: CacheInvalidations {
  private let store: RedisStore

  public init(_ store: RedisStore) { self.store = store }

  public func announce(_ id: RecordID) async throws(StoreError) {
    _ = try await store.reply(to: ["PUBLISH", store.keys.invalidations, id.text])
  }
}

extension RedisStore {
  /// The reply to a command that is no script; from any task.
  func reply(to words: [String]) async throws(StoreError) -> RedisValue {
    let pipeline = pipeline
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
