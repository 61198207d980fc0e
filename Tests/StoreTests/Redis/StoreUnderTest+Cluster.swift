import Store
import TestSupport

extension StoreUnderTest {
  static let cluster = StoreUnderTest("Redis Cluster") {
    let node = RedisNode(.on(try await SharedCluster.cluster.all.map(\.port)))
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

/// The cluster of all tests that change nothing about it.
enum SharedCluster {
  private static let started = Task { try await RedisCluster() }

  static var cluster: RedisCluster {
    get async throws {
      try Tool.require("redis-server")
      return try await started.value
    }
  }
}
