import Idempotency
import NIOCore
import Platform
import Synchronization
import Telemetry
import Wire

// The reconciliation of an unknown outcome with the backend.
extension RequestRunner {
  /// Notes the loss, queries the backend about the record's last attempt, and claims the record to apply the verdict.
  /// The record stays as it is meanwhile, and without a verdict.
  ///
  /// - Parameter age: The time since the loss, by the store's reply that led here.
  @inline(never)
  func reconcile(
    _ request: ClaimRequest, of call: KeyedCall, after attempt: Int, age: Milliseconds
  ) async throws(Problem) -> ClaimLifecycle.ClaimedAction {
    guard let policy = call.route.policy.reconcile else {
      invariantBroken("a route reconciles without its query")
    }
    let seen = ClaimRequest.SeenLoss(age: age, seenAt: .now)
    let loss = await loss(of: call)
    let response = await environment.reconciler.response(
      to: query(policy, of: call), about: AttemptID(record: call.id, attempt: attempt), lostAt: seen,
      on: worker.context.executor)
    let verdict = policy.verdict(of: response, method: head.method, cors: call.route.policy.cors)
    worker.metrics.add(Reconciliation(verdict), route: call.route.number)
    // Most queries find the record as it was. Claiming it by an outdated verdict would begin its `settle` anew.
    let look = verdict == .none ? nil : await look(at: call.id)
    switch call.lifecycle.probed(verdict, look: look, seen: seen) {
    case .refuse(let problem):
      if let loss { noteReturn(to: loss, behind: problem, of: call) }
      throw refusedAsDuplicate(problem)
    case .claim(let takeOver):
      return await claim(request.changed(owner: worker.newOwner(), takeOver: takeOver), of: call)
    }
  }

  private func look(at id: RecordID) async -> ClaimLifecycle.Look? {
    let beganAt = BootInstant.now
    guard let standing = try? await worker.store.find(id, reading: .state) else { return nil }
    return ClaimLifecycle.Look(standing, from: beganAt, to: .now)
  }

  private func query(_ policy: ReconcilePolicy, of call: KeyedCall) -> ProbeQuery {
    let route = call.route.policy
    let host = call.target.authority.map { String(buffer: $0) } ?? head.string(.host)
    return ProbeQuery(
      upstream: route.upstream, target: policy.target(about: call.id),
      host: route.upstream.hostField(for: host), fields: policy.headers,
      // The client waits for the query no longer than for another delivery.
      timeout: max(.seconds(1), min(route.timeToResponse, route.waitTimeout)), maxBody: route.maxResponseBody)
  }

  /// Completes the record with what the backend has stated.
  @inline(never)
  func adopt(
    _ completion: Completion, with claim: Claim, of call: KeyedCall
  ) async -> ClaimLifecycle.ClaimedAction {
    invariant(claim.id == call.id, "a record is completed by the claim of another one")
    let reply: Result<CompletionReply, StoreError>
    do throws(StoreError) {
      reply = .success(try await worker.store.complete(claim, with: completion))
    } catch {
      reply = .failure(error)
    }
    if worker.knowsRecords(of: call.route, call.id, for: delivery) {
      environment.known.change(claim.id) {
        switch reply {
        case .success(let reply):
          let end = KnownRecord.OwnEnd.completed(completion.lifetime)
          $0 = $0?.ended(by: claim, as: end, reply.outcome, now: $1)
        case .failure: $0 = $0?.ended(by: claim, as: .unknown, nil, now: $1)
        }
      }
    }
    return call.lifecycle.adopted(reply)
  }
}

extension Reconciliation {
  fileprivate init(_ verdict: ProbeVerdict) {
    self =
      switch verdict {
      case .applied: .applied
      case .absent: .absent
      case .none: .unknown
      }
  }
}

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

/// Outcomes that were lost with their owner, as deliveries that meet them find them.
extension RequestRunner {
  /// The way in which the record's outcome was lost; `nil` if that cannot be read, or the record has changed meanwhile.
  /// Logs and counts a loss that its owner could not log, since it died.
  @inline(never)
  func loss(of call: KeyedCall) async -> (cause: LossCause, attempt: Int)? {
    guard let view = try? await worker.store.inspect(call.id), let cause = view.cause,
      case .unknown(_, let attempt) = view.standing
    else { return nil }
    if environment.losses.noteLapse(view) { worker.metrics.add(.outcomesLost, route: call.route.number) }
    return (cause, attempt)
  }

  /// Returns the refusal of a delivery because of a loss: not retryable where nothing can settle it any more. Notes the
  /// loss, and counts the records that only a person can settle.
  @inline(never)
  func noteReturn(toLossBehind problem: Problem, of call: KeyedCall) async -> Problem {
    guard problem.code == .outcomeUnknown, let loss = await loss(of: call) else { return problem }
    let isOver = loss.cause.endsExchange && call.route.policy.onUnknown == .hold
    let problem = isOver ? .outcomeUnknown(retryAfter: nil) : problem
    noteReturn(to: loss, behind: problem, of: call)
    return problem
  }

  /// Notes the same for a loss that has been read before.
  func noteReturn(to loss: (cause: LossCause, attempt: Int), behind problem: Problem, of call: KeyedCall) {
    guard problem.code == .outcomeUnknown else { return }
    delivery.logEntry.loss = loss.cause
    guard !problem.isRetryable, environment.losses.isFirstReturn(to: call.id, attempt: loss.attempt) else {
      return
    }
    worker.metrics.add(.unknownReturns, route: call.route.number)
  }
}

/// Claims that have failed, on routes that may run requests without the store.
extension RequestRunner {
  /// Decides on a reply, once it is known whether the store answers anybody, where that counts.
  @inline(never)
  func decide(
    afterAsking reply: ClaimReply, to request: ClaimRequest, of call: KeyedCall
  ) async -> ClaimLifecycle.ClaimedAction {
    let isDown = call.lifecycle.mayOpen(after: reply) ? await worker.store.isDown(for: request.id) : false
    return decide(on: reply, to: request, of: call, isDown: isDown)
  }
}
