import Idempotency
import Logging
import NIOCore
import Platform
import Telemetry
import Wire

/// A request of a shadowed route, which has been matched and nothing else.
///
/// A class, so that it is not copied into the frame of every step that a request takes.
final class ShadowedRequest: Sendable {
  let choice: RouteTable.Choice
  let route: Route
  let target: RequestTarget
  let host: RequestHost?

  init(_ choice: RouteTable.Choice, _ route: Route, _ target: RequestTarget, _ host: RequestHost?) {
    self.choice = choice
    self.route = route
    self.target = target
    self.host = host
  }
}

/// The run of a request of a shadowed route: it is forwarded once, like an unprotected request, independent of the
/// verdict that a route in force would have reached.
///
/// The verdict comes from a claim, before the request is forwarded, of a record that no protected route uses
/// (`RecordID.shadowed`). `ClaimLifecycle` decides as for a protected request. A request that would have run owns its
/// record and ends it as the backend's response demands. A store that fails, or a request that would have been refused,
/// changes only the statement.
struct ShadowRun<Store: RecordStore, Backend: Upstream> {
  let runner: RequestRunner<Store, Backend>
  let request: ShadowedRequest

  private var worker: Worker<Store, Backend> { runner.worker }
  private var delivery: Delivery { runner.delivery }
  private var route: Route { request.route }

  /// A request that would have run, with its claim.
  private struct Ownership {
    let call: KeyedCall
    let claim: Claim
  }

  func run() async throws(Problem) {
    invariant(!route.policy.isEnforced, "a protected request is only observed")
    var obstacle: Problem?
    if request.choice.isUndecided {
      obstacle = await readOperation()
      if obstacle == nil { return try await runner.run(try runner.identify(body: delivery.wholeBody)) }
    }
    let (would, ownership) = await judge(after: obstacle)
    delivery.logEntry.would = would
    worker.metrics.add(would, route: route.number)
    // The log must not name a protected request's record, and refusals have the plain form.
    delivery.recordID = nil
    delivery.errorFormat = .problem
    delivery.routeFields = nil
    let passage = PassThrough(runner: runner, label: .shadow(would: would))
    guard let ownership else {
      // A body that cannot be read ends the request, as it may without protection.
      if let failure = delivery.bodyFailure { throw failure }
      do throws(PassageFailure) { try await passage.run(request.target, by: route) } catch {
        passage.fail(error)
      }
      return
    }
    await forward(ownership, by: passage)
  }

  /// Reads the GraphQL operation by which the route matches.
  ///
  /// - Returns: The reason for which the body cannot be read whole; `nil` if it was.
  private func readOperation() async -> Problem? {
    do throws(Problem) {
      let body = try await delivery.collectBody(limit: route.policy.maxRequestBody)
      await runner.readOperation(body, request.target)
      return nil
    } catch {
      return error
    }
  }

  /// The verdict on the request, and its claim if it would run.
  ///
  /// - Parameter obstacle: The reason for which the request's route cannot be known; `nil` if it is known.
  @inline(never)
  private func judge(after obstacle: Problem?) async -> (ShadowVerdict, Ownership?) {
    do throws(Problem) {
      if let obstacle { throw obstacle }
      guard let call = try await keyedCall() else { return (.passed, nil) }
      try runner.enterQuota(of: call)
      return try await claim(call)
    } catch {
      return (.refused(RefusalReason(error.code)), nil)
    }
  }

  /// The keyed request; `nil` if it has no key and needs none.
  private func keyedCall() async throws(Problem) -> KeyedCall? {
    var subject = try identify(delivery.wholeBody)
    while true {
      switch subject {
      case .keyed(let call): return call
      case .incomplete(let limit): subject = try identify(try await delivery.collectBody(limit: limit))
      case .large(let request): subject = try await runner.identify(request)
      case .unverified(let places):
        await runner.verifyTokens(at: places)
        subject = try identify(delivery.wholeBody)
      case .passed, .batch, .operation, .shadowed, .published, .inquiry: return nil
      }
    }
  }

  private func identify(_ body: ByteBuffer?) throws(Problem) -> RequestRunner<Store, Backend>.Subject {
    try runner.protected(request.choice, route, request.target, request.host, body)
  }

  /// Claims the record that is kept about the request.
  private func claim(_ call: KeyedCall) async throws(Problem) -> (ShadowVerdict, Ownership?) {
    if worker.environment.journal != nil { runner.noteIdentity(of: call) }
    var request = call.shadowClaimRequest(
      owner: worker.newOwner(), isSealed: worker.environment.sealsResponses,
      // There are no digests: a search by a key must not find this record, by which no request ran.
      attribution: Attribution(route: route.policy.name, node: worker.environment.node))
    while true {
      switch await sendClaim(request, of: call) {
      case .forward(let claim):
        do throws(Problem) { try runner.takeNewKey(of: claim, for: call) } catch {
          await worker.undo(.givenBack(claim, by: route.policy))
          throw error
        }
        return (.executed, Ownership(call: call, claim: claim))
      case .replay: return (.replayed, nil)
      case .wait:
        let mayWait = route.policy.maxWait(for: runner.head) > 0
        return (mayWait ? .waited : .refused(.inFlight), nil)
      case .probe: return (.refused(.outcomeUnknown), nil)
      case .compare(let recipe):
        request = request.changed(fingerprint: await runner.fingerprint(of: call, by: recipe))
      case .forwardUnprotected(let unused):
        if let unused { await worker.undo(unused) }
        return (.unprotected, nil)
      case .undo(let unused, let problem):
        await worker.undo(unused)
        return (.refused(RefusalReason(problem.code)), nil)
      case .refuse(let problem):
        if problem.code == .payloadMismatch { await runner.explain(request, of: call) }
        return (.refused(RefusalReason(problem.code)), nil)
      case .adopt, .claimAgain:
        invariantBroken("a claim decided by what it does not consult")
      }
    }
  }

  private func sendClaim(_ request: ClaimRequest, of call: KeyedCall) async -> ClaimLifecycle.ClaimedAction {
    let requestedAt = runner.noteClaimSent()
    defer { runner.noteClaimReply(requestedAt) }
    do throws(StoreError) {
      let outcome =
        if let reply = worker.unstoredReply(to: request.id, request.fingerprint) { try reply.get() } else {
          try await worker.store.claim(request)
        }
      return call.lifecycle.claimed(outcome)
    } catch {
      let mayOpen = call.lifecycle.mayOpen(after: .failure(error))
      let isDown = mayOpen ? await worker.store.isDown(for: request.id) : false
      return call.lifecycle.claimFailed(error, of: request, isDown: isDown)
    }
  }
}

// The owner's part. The record's end is written after the response and never delays it.
extension ShadowRun {
  /// Forwards the request, and ends its record after the client has the response.
  private func forward(_ ownership: Ownership, by passage: PassThrough<Store, Backend>) async {
    guard delivery.isConnected else {
      return await worker.undo(.givenBack(ownership.claim, by: route.policy))
    }
    invariant(ownership.claim.id != ownership.call.id, "a shadowed request owns a protected request's record")
    let owned = worker.own(ownership.claim, of: ownership.call, for: delivery)
    defer { owned.checkEnd() }
    do throws(PassageFailure) {
      guard let head = try await passage.run(request.target, by: route) else {
        // The client went away before the response was read to its end. What a protected request would have become is not
        // known, and a record of that would be of use to nobody.
        return await owned.endOnce(.released(.deleted))
      }
      await owned.endOnce(recordEnd(after: head, ownership.call))
    } catch {
      let isClientGone = !delivery.isConnected
      passage.fail(error)
      guard !isClientGone else { return await owned.endOnce(.released(.deleted)) }
      await owned.endOnce(recordEnd(after: error, ownership.call))
    }
  }

  /// The end of the record after a complete response, of which only the status is kept.
  private func recordEnd(after response: UpstreamHead, _ call: KeyedCall) -> RecordRun.End {
    let head = response.head
    let steering = Steering(of: head, by: route.policy)
    switch call.lifecycle.responded(CompletedExchange(status: head.status, steering: steering)) {
    case .complete(let retention, let remember), .completeAsDeleted(let retention, let remember):
      let length = head.string(.contentLength).flatMap { Int($0) } ?? delivery.logEntry.responseBytes
      let isKept =
        length <= route.policy.maxResponseBody && !response.isDelimitedByClose
        && route.policy.record == .response
      let outcome: Outcome =
        isKept
        ? .whole(RecordedResponse(status: head.status, fields: ByteBuffer(), body: ByteBuffer()))
        : .statusOnly(status: head.status, location: nil)
      return .completed(Completion(outcome: outcome, retention: retention, remember: remember))
    case .release(let release): return .released(release)
    case .markUnknown: return .unknown(.status)
    }
  }

  /// The end of the record without a complete response.
  private func recordEnd(after error: PassageFailure, _ call: KeyedCall) -> RecordRun.End {
    guard let failure = error.failure, case .malformed = failure else {
      return error.isUnsent ? .released(route.policy.uncountedRelease) : .unknown(.connectionLost)
    }
    switch call.lifecycle.failed(failure, after: error.head) {
    case .complete(let completion, _): return .completed(completion)
    case .release(let release, _): return .released(release)
    case .markUnknown, .listen, .giveUp: return .unknown(.malformed)
    }
  }
}
