/// How a cache does, since the start of the process.
package struct CacheStatistics: Sendable, Equatable {
  package var hits = 0
  package var misses = 0
  /// Entries that had to make room for others; not those that expired or were invalidated.
  package var evictions = 0
  package var entries = 0
  package var bytes = 0

  package init() {}

  static func += (left: inout CacheStatistics, right: CacheStatistics) {
    left.hits += right.hits
    left.misses += right.misses
    left.evictions += right.evictions
    left.entries += right.entries
    left.bytes += right.bytes
  }
}
