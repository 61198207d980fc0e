import Glibc

extension StoreUnderTest {
  /// Whether no other program is started, as under `deploy/check`.
  private static let isInMemoryOnly =
    getenv("SEMEL_TEST_STORES").map { String(cString: $0) } == "memory"

  /// The stores that the conformance suite is run on. Without other programs these are one of each implementation of the
  /// rules, so that they take some seconds.
  static let all: [StoreUnderTest] =
    isInMemoryOnly
    ? [embedded, cachedEmbedded] + simulated.prefix(1) + simulated.suffix(1)
    : [
      embedded, cachedEmbedded, sealedEmbedded, compressedEmbedded, redis, sealedRedis,
      compressedRedis, replicated, cluster, secure, sentinel,
    ] + others + simulated

  /// The stores whose clock a test can set.
  static let withOwnClock = onServers([redisWithOwnClock]) + simulatedWithOwnClock

  /// Those of the stores on real servers that are tested.
  static func onServers(_ kinds: [StoreUnderTest]) -> [StoreUnderTest] { isInMemoryOnly ? [] : kinds }
}
