/// How a cache does, since the start of the process.
public struct CacheStatistics: Sendable, Equatable {
  public var hits = 0
  public var misses = 0
  /// Entries that had to make room for others; not those that expired or were invalidated.
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
