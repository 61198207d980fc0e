import Store
import TestSupport

extension StoreUnderTest {
  static let replicated = StoreUnderTest("Redis with a replica") {
    Opened(try await SharedPair.pair.settings())
  }
}

/// The master and the replica of all tests that change nothing about them.
enum SharedPair {
  private static let started = Task { try await ReplicaPair() }

  static var pair: ReplicaPair {
    get async throws {
      try Tool.require("redis-server")
      return try await started.value
    }
  }
}
