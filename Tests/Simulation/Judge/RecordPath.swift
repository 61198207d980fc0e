import Idempotency

/// The steps of a record in the store as edges of `Tests/Model/claim.pml`: which entry may follow which, and by whose
/// command. Each server of Redis has steps of its own, from what it had itself.
///
/// It knows no reasons, and shares nothing with `RecordRules`. What it forbids, no command may do, whatever its
/// arguments are.
struct RecordPath {
  let before: PathEntry?
  let after: PathEntry?
  /// The store's time of the step.
  let now: StoreInstant
  /// Whether an operator's command makes it.
  let isDecision: Bool
  /// Whether a request of unknown outcome may ever run again; `nil` if the route is not known yet.
  var mayRepeat: Bool?

  /// An operator also puts outcomes there by the commands of owners, under a token of its own.
  private var isOperators: Bool {
    guard case .record(let next)? = after else { return isDecision }
    return isDecision || next.owner.isOfOperator
  }

  /// The reason for which the model has no such step; `nil` if it has.
  var fault: String? {
    let before = before?.present(at: now)
    if let until = before?.fenceEnd, now < until, (after?.fenceEnd ?? now) < until {
      return "a fence is gone before its time"
    }
    guard case .record(let next)? = after else { return faultOfRemoval(of: before) }
    switch before {
    case nil: return next.state == .released && !isOperators ? "a record begins as released" : nil
    case .fence(let attempt, _):
      guard next.isInFlight, next.attempt <= attempt else { return nil }
      return "attempt \(next.attempt) follows attempt \(attempt), which was forgotten"
    case .record(let last):
      return last.owner == next.owner ? fault(from: last, to: next) : faultOfSuccession(from: last, to: next)
    }
  }

  private func faultOfRemoval(of before: PathEntry?) -> String? {
    guard case .record(let last)? = before, !isOperators else { return nil }
    switch last.state {
    case .inFlight, .unknown:
      return last.onlyRejectedSoFar ? nil : "a record is gone that had met more than rejections"
    case .released, .completed: return "a record is gone that had ended"
    }
  }

  /// The step of one owner's record.
  private func fault(from last: PathRecord, to next: PathRecord) -> String? {
    guard last.attempt == next.attempt || isOperators else {
      return "the attempt of one owner changes from \(last.attempt) to \(next.attempt)"
    }
    switch (last.state, next.state) {
    case (.inFlight, .inFlight), (.inFlight, .unknown), (.inFlight, .completed), (.inFlight, .released),
      (.unknown, .completed), (.unknown, .released):
      return nil
    // The store's clock was set back since the loss.
    case (.unknown(let loss), .unknown(now)) where now < loss: return nil
    default: return isOperators ? nil : "\(last.word) becomes \(next.word) by its owner"
    }
  }

  /// The step from one owner's record to another's.
  private func faultOfSuccession(from last: PathRecord, to next: PathRecord) -> String? {
    if isOperators { return faultOfDecision(from: last, to: next) }
    guard next.isInFlight, next.attempt > last.attempt else {
      return "\(last.word) by attempt \(last.attempt) becomes another's \(next.word) by \(next.attempt)"
    }
    switch last.state {
    case .released: return nil
    case .inFlight(let leaseUntil) where now < leaseUntil: return "a live lease is granted to another owner"
    case .inFlight, .unknown:
      return mayRepeat == false ? "an unknown outcome is taken over, which its route never allows" : nil
    case .completed: return "\(last.word) is granted to another owner"
    }
  }

  private func faultOfDecision(from last: PathRecord, to next: PathRecord) -> String? {
    if case .inFlight(let leaseUntil) = last.state, now < leaseUntil, !next.owner.isOfOperator {
      return "a live lease is decided about"
    }
    return nil
  }
}
