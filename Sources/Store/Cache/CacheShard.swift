import Idempotency
import Synchronization

/// One part of the cache under one lock.
final class CacheShard: Sendable {
  private struct State {
    var slots: CacheSlots
    /// Raised by each invalidation: a fill that began before one is dropped.
    var generation: UInt64 = 0
    var isBypassed: Bool
    var hits = 0
    var misses = 0
  }

  private let state: Mutex<State>

  init(capacityBytes: Int, isBypassed: Bool) {
    state = Mutex(State(slots: CacheSlots(capacityBytes: capacityBytes), isBypassed: isBypassed))
  }

  func answer(_ id: RecordID, _ fingerprint: Fingerprint, now: BootInstant, countsMiss: Bool) -> ClaimOutcome?
  {
    state.withLock { state -> ClaimOutcome? in
      guard let entry = state.slots.use(id, now: now) else {
        if countsMiss { state.misses += 1 }
        return nil
      }
      state.hits += 1
      return entry.answer(fingerprint, now: now)
    }
  }

  /// `nil` while nothing is kept.
  var generation: UInt64? { state.withLock { $0.isBypassed ? nil : $0.generation } }

  func fill(_ id: RecordID, _ entry: CacheEntry, _ generation: UInt64) {
    state.withLock { state in
      guard !state.isBypassed, state.generation == generation else { return }
      state.slots.put(id, entry)
    }
  }

  func invalidate(_ id: RecordID) {
    state.withLock { state in
      state.generation += 1
      state.slots.remove(id)
    }
  }

  /// Begins empty, and keeps nothing while `isBypassed`.
  func restart(isBypassed: Bool) {
    state.withLock { state in
      state.generation += 1
      state.isBypassed = isBypassed
      state.slots.removeAll()
    }
  }

  var statistics: CacheStatistics {
    state.withLock { state in
      var statistics = CacheStatistics()
      statistics.hits = state.hits
      statistics.misses = state.misses
      statistics.evictions = state.slots.evictions
      statistics.entries = state.slots.count
      statistics.bytes = state.slots.bytes
      return statistics
    }
  }
}
