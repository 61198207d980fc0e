import Idempotency
import Synchronization

/// One part of the cache under one lock.
final class CacheShard: Sendable {
  private struct State: ~Copyable {
    var log: CacheLog
    /// Raised by each invalidation: a fill that began before one is dropped.
    var generation: UInt64 = 0
    var isBypassed: Bool
    var hits = 0
    var misses = 0
  }

  private let state: Mutex<State>

  init(capacityBytes: Int, isBypassed: Bool) {
    state = Mutex(State(log: CacheLog(capacityBytes: capacityBytes), isBypassed: isBypassed))
  }

  func answer(_ id: RecordID, _ fingerprint: Fingerprint, now: BootInstant, countsMiss: Bool) -> ClaimOutcome?
  {
    state.withLock { state -> ClaimOutcome? in
      guard let answer = state.log.use(id, fingerprint, now: now) else {
        if countsMiss { state.misses += 1 }
        return nil
      }
      state.hits += 1
      return answer
    }
  }

  /// `nil` while nothing is kept.
  var generation: UInt64? { state.withLock { $0.isBypassed ? nil : $0.generation } }

  func fill(
    _ id: RecordID, _ fingerprint: Fingerprint, _ record: CompletedRecord, expiry: BootInstant,
    _ generation: UInt64
  ) {
    state.withLock { state in
      guard !state.isBypassed, state.generation == generation else { return }
      state.log.put(id, fingerprint, record, expiry: expiry)
    }
  }

  func invalidate(_ id: RecordID) {
    state.withLock { state in
      state.generation += 1
      state.log.remove(id)
    }
  }

  /// Begins empty, and keeps nothing while `isBypassed`.
  func restart(isBypassed: Bool) {
    state.withLock { state in
      state.generation += 1
      state.isBypassed = isBypassed
      state.log.removeAll()
    }
  }

  var statistics: CacheStatistics {
    state.withLock { state in
      var statistics = CacheStatistics()
      statistics.hits = state.hits
      statistics.misses = state.misses
      statistics.evictions = state.log.evictions
      statistics.entries = state.log.count
      statistics.bytes = state.log.bytes
      return statistics
    }
  }
}
