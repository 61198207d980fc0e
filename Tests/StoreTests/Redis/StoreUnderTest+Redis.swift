import Store

extension StoreUnderTest {
  static let redis = redis("Redis", .task)
  static let redisTold = redis("Redis, whose claims are told", .told)

  private static func redis(_ name: String, _ way: ClaimWay) -> StoreUnderTest {
    StoreUnderTest(name) {
      let node = RedisNode(.on(try await SharedRedis.server), way: way)
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
}
