import Idempotency
import Logging
import NIOCore
import Platform
import Telemetry
import Wire

/// The run of a delivery that owns its record, from top to bottom: forward, capture, record, respond.
///
/// `ClaimLifecycle` decides what follows what. The steps are kept out of line: what is inlined into an async function
/// enlarges its frame, which is allocated for every request.
struct OwnedRun<Store: RecordStore, Backend: Upstream> {
  /// The end of the run: the client has its response, or the delivery claims again, as another owner's duplicate or for
  /// a retry.
  enum End { case done, claimAgain }

  private let runner: RequestRunner<Store, Backend>
  let call: KeyedCall
  let owned: OwnedRecord<Store, Backend>
  private let forwardedAt: NIODeadline
  let exchange: Backend.Exchange
  private let capture: ResponseCapture<Backend.Exchange>

  var worker: Worker<Store, Backend> { runner.worker }
  var delivery: Delivery { runner.delivery }

  /// Runs a request that was granted its claim, to the end: forwards it, captures the response, records it, responds.
  @inline(never)
  static func run(
    _ call: KeyedCall, owning claim: Claim, by runner: RequestRunner<Store, Backend>
  ) async -> End {
    let run = OwnedRun(call, claim, runner)
    defer {
      run.exchange.close()
      run.owned.checkEnd()
    }
    do throws(UpstreamFailure) {
      let response = try await run.capture.run(within: call.route.policy.timeToResponse)
      return await run.record(response, at: run.noteBackendTime())
    } catch {
      _ = run.noteBackendTime()
      return await run.end(after: error)
    }
  }

  /// Forward: the one request that the claim permits, under a lease that is kept from here on.
  @inline(never)
  private init(_ call: KeyedCall, _ claim: Claim, _ runner: RequestRunner<Store, Backend>) {
    invariant(claim.id == call.id, "a request runs by the claim of another one")
    invariant(runner.delivery.memory.isReserved, "a request is sent without room for its response")
    invariant(runner.delivery.responseState == .none, "a request is sent whose client has its response")
    let (worker, delivery, route) = (runner.worker, runner.delivery, call.route)
    self.runner = runner
    self.call = call
    delivery.logEntry.attempt = claim.attempt
    delivery.logEntry.retry = RetryCause(claim)
    // Without an access log, replays do without the digests: the journal has them from the run.
    if worker.environment.journal != nil {
      runner.noteIdentity(of: call, as: claim.attribution)
    }
    owned = worker.own(claim, of: call, for: delivery)
    forwardedAt = runner.noteForwarded()
    exchange = worker.backend.begin(
      UpstreamRequest(
        upstream: route.policy.upstream, method: runner.head.methodText, target: call.target.text,
        fields: UpstreamFields.make(
          for: delivery, call.target, to: route.policy.upstream, id: call.id, attempt: claim.attempt,
          contentCoding: route.policy.contentCoding, by: route,
          omitting: [.get, .head].contains(runner.head.method) ? route.droppedConditions : []),
        body: call.upstreamBody(of: delivery), permit: owned.permit, memory: delivery,
        bindsConnection: runner.head.bindsConnection, caller: delivery.quotaCaller))
    capture = ResponseCapture(of: exchange, call: call, claim: claim, delivery: delivery)
  }

  private func noteBackendTime() -> NIODeadline { runner.noteBackendTime(since: forwardedAt) }

  /// Record: the store has the outcome before the client has the response.
  @inline(never)
  private func record(_ response: BackendResponse, at respondedAt: NIODeadline) async -> End {
    runner.noteRecording(at: respondedAt)
    var recordedAt = respondedAt
    var response = response
    let action: ClaimLifecycle.StoredAction
    let label: ResponseLabel
    let steering = needsOtherThread(toRead: response) ? await readElsewhere(response) : steering(of: response)
    switch decision(on: response, steering) {
    case .complete(let retention, let remember):
      if let reason = response.unkeptReason(by: call.route) { owned.noteUnkept(reason) }
      owned.noteForbiddenStoring(of: response.head)
      action = await owned.complete(completion(with: response, retention, remember))
      label = ResponseLabel(
        .final, isKept: !owned.run.isUnkept && call.route.policy.record == .response)
      owned.countLastAttempt(response.head.status, steering, after: action)
    case .completeAsDeleted(let retention, let remember):
      response = .deleted(inPlaceOf: response)
      action = await owned.complete(completion(with: response, retention, remember))
      label = ResponseLabel(
        .final, isKept: !owned.run.isUnkept && call.route.policy.record == .response)
    case .release(let release):
      label = .notStored
      let decided = await releaseAfterPause(release, after: response.retriableEnd)
      // The pause is no time of the store's.
      recordedAt = .now()
      action = await owned.release(decided)
    case .markUnknown:
      label = .unknown
      action = await owned.markUnknown(byStatus: response.head.status)
    }
    runner.noteRecordTime(since: recordedAt)
    return respond(with: response, label, action)
  }

  /// Whether a rule of the route reads a body that is too large to be read on the loop.
  private func needsOtherThread(toRead response: BackendResponse) -> Bool {
    guard let rules = call.route.policy.outcomes.rules, let body = response.wholeBody,
      !response.isDelimitedByClose
    else { return false }
    return rules.readsBody(of: response.head) && !worker.bodies.mayReadOnLoop(body.readableBytes)
  }

  /// The statements of the response. An async function would copy the whole policy of the route to read them.
  @inline(never)
  private func steering(of response: BackendResponse) -> Steering {
    Steering(
      of: response.head, body: response.wholeBody, mayBeCut: response.isDelimitedByClose,
      by: call.route.policy)
  }

  @inline(never)
  private func readElsewhere(_ response: BackendResponse) async -> Steering {
    let (head, body, route) = (response.head, response.wholeBody, call.route)
    return await worker.bodies.read(body?.readableBytes ?? 0, of: delivery.connection) {
      Steering(of: head, body: body, by: route.policy)
    }
  }

  @inline(never)
  private func decision(
    on response: BackendResponse, _ steering: Steering
  ) -> ClaimLifecycle.RespondedAction {
    invariant(owned.permit.isSent, "a response to a request that was never sent")
    return call.lifecycle.responded(
      CompletedExchange(
        status: response.head.status, steering: steering, isDelete: call.isDelete,
        isRelayed: response.isRelayed))
  }

  @inline(never)
  private func completion(
    with response: BackendResponse, _ retention: Milliseconds, _ remember: Milliseconds
  ) -> Completion {
    let outcome = TraceStamp.put(
      delivery.logEntry.trace, on: response.outcome(by: call.route, method: runner.head.method))
    return Completion(outcome: outcome, retention: retention, remember: remember)
  }

  /// Respond: the client gets the outcome that the store holds now.
  @inline(never)
  private func respond(
    with response: BackendResponse, _ label: ResponseLabel, _ action: ClaimLifecycle.StoredAction
  ) -> End {
    switch action {
    case .respond, .respondAndKeepStoring:
      let isLate = delivery.responseState == .ended
      response.send(to: delivery, label: label)
      guard !isLate else {
        worker.metrics.add(.lateResponses, route: delivery.logEntry.routeNumber)
        return .done
      }
      delivery.logEntry.outcome = RequestOutcome(label)
      delivery.logEntry.failure = FailureCategory(status: response.head.status)
    case .refuseAndKeepStoring(let problem), .refuse(let problem):
      runner.refuse(problem)
    case .replay, .becomeDuplicate:
      return endSuperseded(by: action)
    case .retry:
      delivery.memory.shrinkCapture(to: 0)
      return .claimAgain
    }
    return .done
  }
}

// The other ends.
extension OwnedRun {
  /// The end without a complete response: the record is released if nothing was sent, else it is unknown.
  @inline(never)
  private func end(after failure: UpstreamFailure) async -> End {
    worker.environment.logger.debug("no response from the backend", metadata: ["failure": "\(failure)"])
    if case .malformed = failure { delivery.logEntry.loss = .malformed }
    switch call.lifecycle.failed(failure, after: exchange.readyHead?.head) {
    case .release(let release, let problem):
      let release = await releaseAfterPause(release, after: .init(failure))
      return refuse(problem, after: await owned.release(release))
    case .complete(let completion, let problem):
      return refuse(problem, after: await owned.complete(completion))
    case .markUnknown(let problem):
      return refuse(problem, after: await owned.markUnknown(after: failure))
    case .listen(let settle, let problem):
      if let action = await owned.markUnknownAfterTimeout() { return refuse(problem, after: action) }
      runner.refuse(problem)
      // The request has ended for its client, and its entry must not wait for `settle`.
      runner.report()
      return await listenOn(for: settle)
    case .giveUp:
      owned.giveUp()
    }
    return .done
  }

  /// Listens for a late response after the time-out, for which the client was refused.
  @inline(never)
  private func listenOn(for settle: Milliseconds) async -> End {
    do throws(UpstreamFailure) {
      return await record(try await capture.run(within: settle), at: .now())
    } catch {
      return await end(after: error)
    }
  }

  /// Refuses after the record's end is stored, unless another owner's record counts.
  private func refuse(_ problem: Problem, after action: ClaimLifecycle.StoredAction) -> End {
    switch action {
    case .respond, .respondAndKeepStoring: runner.refuse(problem)
    case .refuseAndKeepStoring(let problem), .refuse(let problem): runner.refuse(problem)
    case .replay, .becomeDuplicate: return endSuperseded(by: action)
    case .retry: return .claimAgain
    }
    return .done
  }

  /// Ends a run whose record has another owner: with that owner's outcome, or as its duplicate. A response that has
  /// begun can only be cut.
  private func endSuperseded(by action: ClaimLifecycle.StoredAction) -> End {
    if case .replay(let record) = action {
      runner.replay(record, from: .store)
      return .done
    }
    guard delivery.responseState == .none else {
      runner.cut()
      return .done
    }
    return .claimAgain
  }
}
