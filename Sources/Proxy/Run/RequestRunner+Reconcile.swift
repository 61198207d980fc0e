import Idempotency
import NIOCore
import Platform
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
