import Idempotency
import Logging
import Store
import TestSupport

extension StoreUnderTest {
  /// The embedded store; one serves all event loops, so that the other handle is the same.
  static let embedded = StoreUnderTest("embedded") {
    let directory = TemporaryDirectory()
    let store = try EmbeddedStore(path: directory.file("semel.db"), logger: Logger(label: "test"))
    return Opened(store: store, other: store, facts: store, otherFacts: store) {
      await store.close()
      // Removed with its last reference.
      withExtendedLifetime(directory) {}
    }
  }
}
