import Idempotency
import Logging
import Store
import TestSupport

extension StoreUnderTest {
  /// The embedded store behind the cache of one process, as two event loops have it.
  static let cachedEmbedded = StoreUnderTest("cached embedded") {
    let directory = TemporaryDirectory()
    let store = try EmbeddedStore(path: directory.file("semel.db"), logger: Logger(label: "test"))
    let cache = LocalCache(capacityBytes: 64 << 20)
    return Opened(
      store: CachedStore(store, cache: cache), other: CachedStore(store, cache: cache), facts: store,
      otherFacts: store
    ) {
      await store.close()
      // Removed with its last reference.
      withExtendedLifetime(directory) {}
    }
  }
}
