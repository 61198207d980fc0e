import Idempotency
import Synchronization
import Wire

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

  private struct Query {
    /// The loss for which it began.
    let loss: ClaimRequest.SeenLoss
    var waiters: [Waiter]
  }

  private let probe: (any OutcomeProbe)?
  /// The query about each attempt. A response about an earlier attempt is no use to the deliveries that wait.
  private let queries = Mutex<[AttemptID: Query]>([:])

  init(_ probe: (any OutcomeProbe)?) { self.probe = probe }

  /// Returns the response to a query about an attempt, or to the one that is under way already. Returns `nil` without a
  /// response, or if too many queries are under way.
  ///
  /// A query that began before the attempt's loss is of no use, either: the owner may have come back to life since, sent
  /// its request and lost the response again. Its deliveries get `nil`.
  func response(
    to query: ProbeQuery, about id: AttemptID, lostAt loss: ClaimRequest.SeenLoss,
    on executor: (any TaskExecutor)? = nil
  ) async -> ProbeResponse? {
    guard let probe else { return nil }
    return await withUnsafeContinuation { waiter in
      switch enter(waiter, id, loss) {
      case .first:
        Task(executorPreference: executor) { [self] in
          let response = await probe.send(query)
          for waiter in leave(id) { waiter.resume(returning: response) }
        }
      case .joined: break
      case .refused: waiter.resume(returning: nil)
      }
    }
  }

  private enum Entry { case first, joined, refused }

  private func enter(_ waiter: Waiter, _ id: AttemptID, _ loss: ClaimRequest.SeenLoss) -> Entry {
    queries.withLock { queries in
      if let query = queries[id] {
        guard loss.age >= query.loss.minAge(at: loss.seenAt) else { return .refused }
        queries[id]?.waiters.append(waiter)
        return .joined
      }
      guard queries.count < Self.max else { return .refused }
      queries[id] = Query(loss: loss, waiters: [waiter])
      return .first
    }
  }

  private func leave(_ id: AttemptID) -> [Waiter] {
    queries.withLock { queries in
      guard let query = queries.removeValue(forKey: id) else {
        invariantBroken("a query ends that was not begun")
      }
      return query.waiters
    }
  }
}
