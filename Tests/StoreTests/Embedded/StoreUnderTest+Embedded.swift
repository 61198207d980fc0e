import Idempotency
import Logging
import Store
import Synchronization
import TestSupport

extension StoreUnderTest {
  /// The embedded store; one serves all event loops, so that the other handle is the same.
  static let embedded = StoreUnderTest("embedded") {
    let directory = TemporaryDirectory()
    let store = try EmbeddedStore(path: directory.file("semel.db"), logger: Logger(label: "test"))
    let successors = Mutex<[EmbeddedStore]>([])
    return Opened(store: store, other: store, facts: store, otherFacts: store) {
      for store in [store] + successors.withLock({ $0 }) { await store.close() }
      // Removed with its last reference.
      withExtendedLifetime(directory) {}
    } successor: {
      let copy = directory.file("copy.db")
      _ = try EmbeddedCopy.make(ofFile: directory.file("semel.db"), to: copy)
      let successor = try EmbeddedStore(path: copy, logger: Logger(label: "test"))
      successors.withLock { $0.append(successor) }
      return successor
    }
  }
}
