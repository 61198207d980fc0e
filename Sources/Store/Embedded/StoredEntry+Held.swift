import Idempotency

/// The time by which expiry is held back while the clock is in doubt. See `StoreClock`.
struct ExpiryHold: Equatable {
  /// The later time, which the rules use.
  var now: StoreInstant
  var lead: Milliseconds

  fileprivate func held(_ end: StoreInstant) -> StoreInstant { end > now ? end : end + lead }
}

extension StoredEntry {
  /// Returns the entry with the lead added to those ends that are over by the later time. The rules, which use the
  /// later time, then find an end over only if it is also over by the earlier time. Ends of leases are unchanged,
  /// because no owner outlives its process.
  func held(by hold: ExpiryHold) -> StoredEntry {
    switch self {
    case .fence(let attempt, let until, let owner):
      return .fence(attempt: attempt, until: hold.held(until), givenBackBy: owner)
    case .record(var record):
      record.state = Self.held(record, by: hold)
      return .record(record)
    }
  }

  private static func held(_ record: StoredRecord, by hold: ExpiryHold) -> StoredRecord.State {
    let retention = record.unknownRetention
    switch record.state {
    case .inFlight(let loss) where loss + retention <= hold.now:
      // Nobody holds it: a lease that ended by the later time stays ended.
      return .unknown(since: loss + hold.lead)
    case .unknown(let since) where since + retention <= hold.now:
      return .unknown(since: since + hold.lead)
    case .inFlight, .unknown: return record.state
    case .released(let until): return .released(until: hold.held(until))
    case .tombstone(let until): return .tombstone(until: hold.held(until))
    case .completed(var completion):
      completion.expiresAt = hold.held(completion.expiresAt)
      completion.rememberedUntil = max(completion.expiresAt, hold.held(completion.rememberedUntil))
      return .completed(completion)
    }
  }
}
