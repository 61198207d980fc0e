import Glibc

extension StoreUnderTest {
  /// The stores that need no other program.
  private static let inMemory =
    [embedded, cachedEmbedded, sealedEmbedded, compressedEmbedded] + simulated

  /// Whether only these are tested, as `deploy/check` does.
  private static let isInMemoryOnly =
    getenv("SEMEL_TEST_STORES").map { String(cString: $0) } == "memory"

  /// The stores that the conformance suite is run on.
  static let all =
    inMemory
    + onServers([redis, sealedRedis, compressedRedis, replicated, cluster, secure, sentinel] + others)

  /// Those of the stores on real servers that are tested.
  static func onServers(_ kinds: [StoreUnderTest]) -> [StoreUnderTest] { isInMemoryOnly ? [] : kinds }
}
