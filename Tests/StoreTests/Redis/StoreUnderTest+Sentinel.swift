import Idempotency
import Store
import TestSupport

extension StoreUnderTest {
  static let sentinel = StoreUnderTest("Redis by Sentinel") {
    Opened(try await SharedTrio.trio.settings())
  }
}

/// The master, replica and Sentinels of all tests that change nothing about them.
private enum SharedTrio {
  // A master that a busy machine keeps from replying is not replaced.
  private static let started = Task { try await SentinelTrio(patience: .seconds(600)) }

  static var trio: SentinelTrio {
    get async throws {
      try Tool.require("redis-server")
      return try await started.value
    }
  }
}
