import Idempotency
import Platform

/// The announcements of changed records to all nodes of a namespace on one Redis. The scripts announce each change,
/// too, but only these report that Semel may not publish. Safe to use from any task.
extension RedisStore: CacheInvalidations {
  public func announce(_ id: RecordID) async throws(StoreError) {
    _ = try await reply(to: ["PUBLISH", keys.invalidations, id.text])
  }
}

extension RedisSubscriber {
  /// An event for a cache of completed outcomes.
  public enum Event: Sendable, Equatable {
    /// From now on every invalidation arrives. Entries from before may be stale.
    case up
    /// From now on invalidations may be missed.
    case down
    case invalidated(RecordID)
    /// Every invalidation from before this moment has arrived.
    case heard(BootInstant)
  }
}

extension RedisStore {
  func reply(to words: [String]) async throws(StoreError) -> RedisValue {
    let nodes = nodes
    return try await nodes.context.run { () async throws(StoreError) -> RedisValue in
      try await nodes.reply(to: words, words[0] == "PUBLISH" ? .any : .key(words[1]))
    }
  }
}
