/// The counts of a cache since the start of the process, and its present size.
public struct CacheStatistics: Sendable, Equatable {
  /// The number of look-ups that found an outcome.
  public var hits = 0
  /// The number of look-ups that found none.
  public var misses = 0
  /// The number of entries that were dropped to make space, without those that expired or were invalidated.
  public var evictions = 0
  /// The number of entries at present.
  public var entries = 0
  /// The bytes of these entries, without the index.
  public var bytes = 0

  public init() {}

  static func += (left: inout CacheStatistics, right: CacheStatistics) {
    left.hits += right.hits
    left.misses += right.misses
    left.evictions += right.evictions
    left.entries += right.entries
    left.bytes += right.bytes
  }
}
