import Idempotency
import Synchronization

/// One attempt on a record.
struct AttemptID: Hashable {
  let record: RecordID
  let attempt: Int
}

/// The queries to backends about unknown outcomes that are under way in this process: one for an attempt, and a bounded
/// number in all.
final class Reconciler: Sendable {
  /// The maximum number of queries at once: each holds a thread for up to its time limit.
  static let max = 8

  private typealias Waiter = UnsafeContinuation<ProbeResponse?, Never>

  private let probe: (any OutcomeProbe)?
  /// The deliveries that wait for the query about each attempt. A response about an earlier attempt is no use to them.
  private let waiters = Mutex<[AttemptID: [Waiter]]>([:])

  init(_ probe: (any OutcomeProbe)?) { self.probe = probe }

  /// Returns the response to a query about an attempt, or to the one that is under way already. Returns `nil` without a
  /// response, or if too many queries are under way.
  func response(to query: ProbeQuery, about id: AttemptID) async -> ProbeResponse? {
    guard let probe else { return nil }
    return await withUnsafeContinuation { waiter in
      switch enter(waiter, id) {
      case .first:
        Task { [self] in
          let response = await probe.send(query)
          for waiter in leave(id) { waiter.resume(returning: response) }
        }
      case .joined: break
      case .refused: waiter.resume(returning: nil)
      }
    }
  }

  private enum Entry { case first, joined, refused }

  private func enter(_ waiter: Waiter, _ id: AttemptID) -> Entry {
    waiters.withLock { waiters in
      if waiters[id] != nil {
        waiters[id]?.append(waiter)
        return .joined
      }
      guard waiters.count < Self.max else { return .refused }
      waiters[id] = [waiter]
      return .first
    }
  }

  private func leave(_ id: AttemptID) -> [Waiter] {
    waiters.withLock { $0.removeValue(forKey: id) ?? [] }
  }
}
