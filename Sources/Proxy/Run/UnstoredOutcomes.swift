import Idempotency
import Synchronization
import Wire

/// The outcomes of this process's runs that no record has yet: another owner had the record, the store has not taken
/// them, or they are on their way to it while the lease is not renewed. A delivery that is granted such a record stores
/// that outcome, and its own request does not run.
///
/// Safe to use from any thread.
final class UnstoredOutcomes: Sendable {
  /// One outcome, for as long as this object lives.
  final class Holding: Sendable {
    private let outcomes: UnstoredOutcomes
    private let id: RecordID
    private let number: Int

    fileprivate init(_ outcomes: UnstoredOutcomes, _ id: RecordID, number: Int) {
      self.outcomes = outcomes
      self.id = id
      self.number = number
    }

    deinit { outcomes.remove(id, number: number) }
  }

  private struct Held {
    let number: Int
    let outcome: OvertakenOutcome
  }

  private let records = Mutex<[RecordID: [Held]]>([:])
  private let numbers = Atomic<Int>(0)
  /// The number of outcomes, so that a grant needs no lock.
  private let count = Atomic<Int>(0)

  /// Holds an outcome until the returned object is released.
  func hold(_ outcome: OvertakenOutcome, of id: RecordID) -> Holding {
    let number = numbers.add(1, ordering: .relaxed).newValue
    records.withLock { $0[id, default: []].append(Held(number: number, outcome: outcome)) }
    count.add(1, ordering: .sequentiallyConsistent)
    return Holding(self, id, number: number)
  }

  /// Whether none is held.
  var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

  /// The outcome that a granted claim is to have; `nil` if there is none.
  func outcome(for claim: Claim) -> OvertakenOutcome? {
    guard !isEmpty else { return nil }
    return records.withLock { $0[claim.id]?.first { $0.outcome.ends(claim) }?.outcome }
  }

  private func remove(_ id: RecordID, number: Int) {
    // The outcome is destroyed outside of the lock.
    let left = records.withLock { records in
      let before = records[id] ?? []
      let after = before.filter { $0.number != number }
      records[id] = after.isEmpty ? nil : after
      return before
    }
    let rest = count.subtract(1, ordering: .sequentiallyConsistent).newValue
    invariant(rest >= 0, "an outcome is let go that nobody held")
    _ = left
  }
}
