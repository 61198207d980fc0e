/// The counts of a cache since the start of the process, and its present size.
public struct CacheStatistics: Sendable, Equatable {
  public var hits = 0
  public var misses = 0
  /// The number of entries that were dropped to make space, without those that expired or were invalidated.
  public var evictions = 0
  public var entries = 0
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
