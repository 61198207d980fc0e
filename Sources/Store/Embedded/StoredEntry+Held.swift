import Idempotency

/// The span by which expiry is held back while the clock is in doubt. See `StoreClock`.
struct ExpiryHold: Equatable {
  /// The later time, by which the rules are asked.
  var now: StoreInstant
  var lead: Milliseconds

  fileprivate func held(_ end: StoreInstant) -> StoreInstant { end > now ? end : end + lead }
}

extension StoredEntry {
  /// The entry with those ends moved by the lead that are over by the later time: the rules then find them over only
  /// where they are over by the earlier time, too. Ends of leases stay: no owner outlives its process.
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
      return .inFlight(leaseUntil: loss + hold.lead)
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
