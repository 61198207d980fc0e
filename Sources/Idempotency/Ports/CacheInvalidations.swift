/// The announcements by which the other nodes of a namespace drop a record from their caches.
public protocol CacheInvalidations: Sendable {
  /// Announces that a record was changed. Throws where the other nodes cannot be reached; safe to repeat.
  func announce(_ id: RecordID) async throws(StoreError)
}
