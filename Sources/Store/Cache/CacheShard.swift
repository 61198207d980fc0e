import Idempotency
import Synchronization
import Wire

/// One part of the cache, with its own lock.
final class CacheShard: Sendable {
  private struct State: ~Copyable {
    var log: CacheLog
    /// The number of invalidations. A fill that began before the latest one is dropped.
    var generation: UInt64 = 0
    var isBypassed: Bool
    var counts = CacheStatistics()
  }

  private let state: Mutex<State>

  init(capacityBytes: Int, isBypassed: Bool) {
    state = Mutex(State(log: CacheLog(capacityBytes: capacityBytes), isBypassed: isBypassed))
  }

  func outcome(
    _ id: RecordID, _ fingerprint: Fingerprint, before end: BootInstant,
    now: @autoclosure @Sendable () -> BootInstant
  ) -> ClaimOutcome? {
    state.withLock { state -> ClaimOutcome? in
      guard let outcome = state.log.use(id, fingerprint, before: end, now: now()) else { return nil }
      state.counts.hits += 1
      return outcome
    }
  }

  func generation(countsMiss: Bool) -> UInt64? {
    state.withLock { state in
      if countsMiss { state.counts.misses += 1 }
      return state.isBypassed ? nil : state.generation
    }
  }

  func fill(
    _ id: RecordID, _ fingerprint: Fingerprint, _ record: CompletedRecord, expiry: BootInstant,
    _ generation: UInt64
  ) {
    state.withLock { state in
      invariant(generation <= state.generation, "an outcome is cached by a ticket of another shard")
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

  /// Empties the shard. Nothing is cached while `isBypassed` is true.
  func restart(isBypassed: Bool) {
    state.withLock { state in
      state.generation += 1
      state.isBypassed = isBypassed
      state.log.removeAll()
    }
  }

  var statistics: CacheStatistics {
    state.withLock { state in
      var statistics = state.counts
      statistics.evictions = state.log.evictions
      statistics.entries = state.log.count
      statistics.bytes = state.log.bytes
      return statistics
    }
  }
}
