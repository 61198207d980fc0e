import Store
import TestSupport

extension StoreUnderTest {
  static let cluster = StoreUnderTest("Redis Cluster") {
    Opened(.on(try await SharedCluster.cluster.all.map(\.port)))
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
