extension StoreUnderTest {
  /// The stores that the conformance suite is run on.
  static let all: [StoreUnderTest] = [embedded, cachedEmbedded, redis, replicated, cluster] + others
}
