extension StoreUnderTest {
  /// The stores that the conformance suite is run on.
  static let all: [StoreUnderTest] =
    [
      embedded, cachedEmbedded, sealedEmbedded, redis, sealedRedis, replicated, cluster,
    ] + others
}
