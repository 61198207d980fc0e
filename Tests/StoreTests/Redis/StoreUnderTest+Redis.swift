import Store

extension StoreUnderTest {
  static let redis = StoreUnderTest("Redis") {
    let node = RedisNode(.on(try await SharedRedis.server))
    let sibling = node.sibling()
    return Opened(
      store: node.store, other: sibling.store, facts: node.store.store.facts,
      otherFacts: sibling.store.store.facts
    ) {
      node.close()
      sibling.close()
    }
  }
}
