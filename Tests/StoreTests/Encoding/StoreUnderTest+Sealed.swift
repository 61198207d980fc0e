import Idempotency
import Logging
import Store
import TestSupport

extension StoreUnderTest {
  private static let codec = OutcomeCodec(
    secrets: ["the newer secret", "the older secret"], compression: .all)

  /// The embedded store with responses sealed, large ones compressed before.
  static let sealedEmbedded = StoreUnderTest("sealed embedded") {
    let directory = TemporaryDirectory()
    let store = try EmbeddedStore(
      path: directory.file("semel.db"), codec: codec, logger: Logger(label: "test"))
    let keyed = KeyedStore(base: store)
    return Opened(store: keyed, other: keyed, facts: store, otherFacts: store) {
      await store.close()
      // Removed with its last reference.
      withExtendedLifetime(directory) {}
    }
  }

  /// Redis with responses sealed, large ones compressed before.
  static let sealedRedis = StoreUnderTest("sealed Redis") {
    let node = RedisNode(.on(try await SharedRedis.server), codec: codec)
    let sibling = node.sibling()
    return Opened(
      store: KeyedStore(base: node.store), other: KeyedStore(base: sibling.store),
      facts: node.store.store, otherFacts: sibling.store.store
    ) {
      node.close()
      sibling.close()
    }
  }

  private static let compressing = OutcomeCodec(compression: .unsealed)

  /// The embedded store with large responses compressed.
  static let compressedEmbedded = StoreUnderTest("compressed embedded") {
    let directory = TemporaryDirectory()
    let store = try EmbeddedStore(
      path: directory.file("semel.db"), codec: compressing, logger: Logger(label: "test"))
    return Opened(store: store, other: store, facts: store, otherFacts: store) {
      await store.close()
      // Removed with its last reference.
      withExtendedLifetime(directory) {}
    }
  }

  /// Redis with large responses compressed.
  static let compressedRedis = StoreUnderTest("compressed Redis") {
    Opened(on: RedisNode(.on(try await SharedRedis.server), codec: compressing))
  }
}
