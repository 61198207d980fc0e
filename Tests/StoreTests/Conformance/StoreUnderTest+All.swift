extension StoreUnderTest {
  /// The stores that the conformance suite is run on.
  static let all: [StoreUnderTest] =
    [
      embedded, cachedEmbedded, sealedEmbedded, compressedEmbedded, redis, sealedRedis,
      compressedRedis, replicated, cluster, secure, sentinel,
    ] + others + simulated
}
