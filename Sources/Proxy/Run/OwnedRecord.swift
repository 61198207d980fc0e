import Idempotency
import Logging
import NIOCore
import Platform
import Telemetry
import Wire

/// A record that a delivery owns, until the store has its end: it renews the lease, so that a retry never takes the
/// claim because the backend is slow, and sends the end.
///
/// `RecordRun` decides; this carries out its actions. A run that is over must have given the record an end
/// (`checkEnd`), by `complete`, `release`, one of the marks, `endOnce` or `giveUp`. Confined to its event loop.
final class OwnedRecord<Store: RecordStore, Backend: Upstream>: @unchecked Sendable {
  let call: KeyedCall
  let claim: Claim
  /// The delivery for which the claim was granted.
  let delivery: Delivery
  let permit: SendPermit
  let worker: Worker<Store, Backend>
  var run: RecordRun
  /// Its number among its worker's.
  private var number = 0
  /// The timer of the next renewal; `nil` if none is scheduled.
  private var timer: LoopTimers.Token?
  /// The records that this process knows; `nil` if the route never runs a request without the store.
  private var known: KnownRecords?

  /// - Parameter firstRenewal: The time to the first renewal; `nil` for a third of the lease.
  init(
    _ claim: Claim, of call: KeyedCall, for delivery: Delivery, on worker: Worker<Store, Backend>,
    firstRenewal: Milliseconds? = nil
  ) {
    invariant(
      claim.id == call.id || !call.route.isEnforced, "a record is owned by the claim of another one")
    self.claim = claim
    self.call = call
    self.delivery = delivery
    self.worker = worker
    run = RecordRun(claim, uncountedRelease: call.route.policy.uncountedRelease)
    permit = SendPermit(requestedAt: claim.requestedAt, lease: claim.lease)
    number = worker.enter(self)
    perform(.renew(after: firstRenewal ?? claim.lease / 3))
  }

  /// Whether the client's response depends on the record. On a shadowed route it does not.
  var isEnforced: Bool { call.route.isEnforced }

  /// Stops the process if a run ends that has given its record no end.
  func checkEnd() { invariant(run.hasEnd, "a run ends, and its record has no end") }

  /// Renews the lease at once: the store may have lost it, or judge it by another time than before.
  func renewNow() { perform(run.renewalIsDue()) }

  private func perform(_ action: RecordRun.Action) {
    worker.context.loop.assertInEventLoop()
    switch action {
    case .none: break
    case .renew(after: let span?):
      invariant(timer == nil, "two timers renew one lease")
      timer = worker.context.timers.start(milliseconds: span.count) { [self] in renewNow() }
    case .renew(after: nil):
      stopTimer()
      worker.context.task { [self] in await renew() }
    case .request(let lapse): logLapse(lapse)
    case .extend(let span):
      worker.metrics.add(.leasesRenewed)
      perform(.renew(after: span))
    case .revoke(let lapse):
      permit.revoke()
      logLapse(lapse)
    case .stop(let lapse):
      stopTimer()
      logLapse(lapse)
    case .holdClaims: worker.environment.unstored.hold(claim)
    case .leave:
      stopTimer()
      worker.environment.unstored.leave(claim)
      worker.leave(number)
    }
  }

  private func stopTimer() {
    if let timer { worker.context.timers.stop(timer) }
    timer = nil
  }

  private func renew() async {
    let requestedAt = BootInstant.now
    let action = run.renewalBegins(now: requestedAt)
    guard case .request = action else { return }
    perform(action)
    do throws(StoreError) {
      let outcome = try await worker.store.renew(claim)
      let action = run.renewed(outcome, requestedAt: requestedAt, now: .now)
      if case .extend = action { permit.renewed(requestedAt: requestedAt, lease: claim.lease) }
      perform(action)
    } catch {
      perform(run.renewalFailed(error.text))
    }
  }

  /// Notes the record's end for the time when the store is away.
  ///
  /// - Parameter outcome: The store's reply; `nil` if it gave none.
  private func note(_ end: KnownRecord.OwnEnd, _ outcome: OwnerOutcome? = nil) {
    known?.change(claim.id) { [claim] in $0 = $0?.ended(by: claim, as: end, outcome, now: $1) }
  }

  /// Notes the run among the records that this process knows, and from now on its end: its route may run requests
  /// without the store, or is about to.
  func enter(_ known: KnownRecords) {
    worker.context.loop.assertInEventLoop()
    guard self.known == nil else { return }
    self.known = known
    known.change(claim.id) { [claim] record, _ in
      guard record?.isRunningHere != true else { return }
      record = KnownRecord(.owned, owner: claim.owner, fingerprint: claim.fingerprint)
    }
    if let end = run.knownEnd { note(end) }
  }
}

// The ends, each followed by the decision on the client's response.
extension OwnedRecord {
  /// Stores a final outcome. If the store gives no reply, the write is repeated in the background while the lease is
  /// renewed: no retry runs because a record could not be written.
  @inline(never)
  func complete(_ completion: Completion) async -> ClaimLifecycle.StoredAction {
    invariant(claim.id == call.id, "an outcome is recorded by the claim of another request")
    perform(run.decide(.completed(completion), now: .now).action)
    do throws(StoreError) {
      let reply = try await worker.store.complete(claim, with: completion)
      stored(.completed(completion), reply.outcome)
      if let record = reply.record {
        delivery.logEntry.timeToSuccessMilliseconds = (record.recordedAt - claim.firstSeen).count
        if case .whole = completion.outcome, case .statusOnly = record.outcome { noteUnkept(.tooSlow) }
      }
      return call.lifecycle.stored(reply.outcome)
    } catch {
      // The store's failures are logged by `MeasuredStore`, not once a request.
      worker.environment.logger.debug(
        "an outcome could not be stored yet; it is tried again", metadata: ["error": "\(error)"])
      let action = call.lifecycle.storingFailed()
      if case .respondAndKeepStoring = action {
        keepStoring(completion, as: .completed(completion.lifetime))
      } else {
        keepStoring(completion, as: .unknown)
      }
      return action
    }
  }

  /// Releases the record, once no copy of its claim can take it again.
  @inline(never)
  func release(_ decided: Release) async -> ClaimLifecycle.StoredAction {
    let (end, action) = run.decide(.released(decided), now: .now)
    perform(action)
    await worker.waitForCopies(of: claim)
    do throws(StoreError) {
      let outcome = try await end.send(of: claim, to: worker.store)
      stored(end, outcome)
      return call.lifecycle.stored(outcome)
    } catch {
      sendAgain(end, known: end.known, in: takeMemory(toKeep: 0))
      return call.lifecycle.releaseFailed()
    }
  }

  /// Marks the record unknown because the backend's own response has that class.
  @inline(never)
  func markUnknown(byStatus status: Int) async -> ClaimLifecycle.StoredAction {
    noteLoss(.status, ["status": "\(status)"])
    return await endUnknown(because: .status)
  }

  /// Marks the record unknown because the response was lost.
  @inline(never)
  func markUnknown(after failure: UpstreamFailure, cause: LossCause? = nil) async
    -> ClaimLifecycle.StoredAction
  {
    let cause = cause ?? LossCause(failure)
    noteLoss(cause, ["reason": "\(failure)"])
    return await endUnknown(because: cause)
  }

  private func endUnknown(because cause: LossCause) async -> ClaimLifecycle.StoredAction {
    let outcome = await mark(because: cause)
    perform(run.leaves())
    guard let outcome else { return call.lifecycle.markFailed() }
    return call.lifecycle.stored(outcome)
  }

  /// Marks the record unknown because the backend has not responded in time. Returns `nil` if the client is refused for
  /// that, and a late response is awaited.
  @inline(never)
  func markUnknownAfterTimeout() async -> ClaimLifecycle.StoredAction? {
    noteLoss(LossCause(.timedOut), ["reason": "\(UpstreamFailure.timedOut)"])
    guard let outcome = await mark(because: LossCause(.timedOut)),
      let action = call.lifecycle.marked(outcome)
    else {
      run.listens()
      return nil
    }
    perform(run.leaves())
    return action
  }

  /// Marks the record unknown. If the store gives no reply, the lease lapses, which has the same effect.
  ///
  /// - Returns: The store's reply; `nil` if it gave none.
  @inline(never)
  private func mark(because cause: LossCause) async -> OwnerOutcome? {
    perform(run.decide(.unknown(cause), now: .now).action)
    note(.unknown)
    do throws(StoreError) {
      let outcome = try await worker.store.markUnknown(claim, because: cause)
      worker.countSuperseded(outcome)
      return outcome
    } catch {
      run.unanswered()
      worker.environment.logger.debug("a record was not marked unknown", metadata: ["error": "\(error)"])
      return nil
    }
  }

  /// Gives up a run that has listened for a late response in vain.
  func giveUp() { perform(run.leaves()) }

  /// Ends the record of a shadowed request. If the store gives no reply, the lease lapses, and the outcome counts as
  /// unknown.
  func endOnce(_ decided: RecordRun.End) async {
    let (end, action) = run.decide(decided, now: .now)
    perform(action)
    if case .released = end { await worker.waitForCopies(of: claim) }
    do throws(StoreError) {
      _ = try await end.send(of: claim, to: worker.store)
    } catch {
      worker.environment.logger.debug(
        "the end of a shadowed request was not stored", metadata: ["error": "\(error)"])
    }
    perform(run.leaves())
  }

  /// Counts an intent that a final response has ended because no further attempt is allowed.
  @inline(never)
  func countLastAttempt(_ status: Int, _ steering: Steering, after action: ClaimLifecycle.StoredAction) {
    switch action {
    case .respond, .respondAndKeepStoring: break
    default: return
    }
    guard call.lifecycle.endsAttempts(status: status, steering: steering, to: claim) else { return }
    worker.metrics.add(.attemptsExhausted, route: call.route.number)
  }

  /// Leaves the record after the store's reply to its end.
  private func stored(_ end: RecordRun.End, _ outcome: OwnerOutcome) {
    note(end.known, outcome)
    perform(run.leaves())
    worker.countSuperseded(outcome)
    if case .completed(let completion) = end { noteRejected(outcome, of: completion) }
  }
}

// The ends to which the store gave no reply.
extension OwnedRecord {
  /// Keeps an outcome in memory until the store takes it: without its body if there is no room for that. If there is
  /// none at all, the lease lapses, and the record is unknown.
  @inline(never)
  private func keepStoring(_ completion: Completion, as known: KnownRecord.OwnEnd) {
    // The response leaves now. The outcome takes over its memory.
    delivery.memory.releaseCapture()
    var pending = completion
    var bytes = takeMemory(toKeep: pending.outcome.size)
    if bytes == nil {
      if case .whole = pending.outcome { noteUnkept(.noMemory) }
      pending.outcome = pending.outcome.withoutResponse
      bytes = takeMemory(toKeep: pending.outcome.size)
    }
    sendAgain(.completed(pending), known: known, in: bytes)
  }

  /// Takes memory for an end that has to wait for the store: for its outcome, for the request's head with all that it
  /// was read with, and for some objects. Returns the number of bytes; `nil` if there are none.
  ///
  /// - Parameter content: The bytes of the outcome.
  private func takeMemory(toKeep content: Int) -> Int? {
    let bytes = delivery.request.head.heldBytes + 1024 + content
    return worker.takeMemory(bytes) ? bytes : nil
  }

  /// Sends the end again in a task of its own, until the store replies.
  ///
  /// - Parameters:
  ///   - known: The end as this process knows it until then.
  ///   - bytes: The memory that was taken for it; `nil` if there is none, so that the lease lapses.
  private func sendAgain(_ end: RecordRun.End, known: KnownRecord.OwnEnd, in bytes: Int?) {
    run.unanswered()
    guard let bytes else {
      note(.unknown)
      noteLoss(.noMemory)
      return perform(run.leaves())
    }
    perform(run.repeats(end, known: known))
    note(known)
    worker.context.task { [self] in
      let outcome = await worker.repeatUntilReply { [claim] store throws(StoreError) in
        try await end.send(of: claim, to: store)
      }
      if let outcome {
        stored(end, outcome)
      } else {
        if !worker.isStopping { noteDropped() }
        perform(run.leaves())
      }
      worker.giveMemory(bytes)
    }
  }
}

// The end of the process.
extension OwnedRecord {
  /// Decides how a run ends with its process, and refuses its client, unless its end was decided before. Its request
  /// must not be sent after this: another delivery may be refused because the outcome is unknown.
  func cut() {
    let (cut, action) = run.cut(isSent: permit.isSent || !isEnforced, now: .now)
    permit.revoke()
    perform(action)
    guard isEnforced else { return }
    let problem: Problem
    switch cut {
    case .awaitRun: return
    case .refuseAsUnsent: problem = .overloaded(.draining)
    case .refuseAsLost:
      noteLoss(.shutdown)
      // Retryable even with `on_unknown: hold`, since the record's end is not known yet: a retry learns it.
      problem = .responseLost(.broken, retryAfter: Problem.defaultPause)
    }
    guard delivery.responseState == .none else { return }
    RequestRunner(worker: worker, delivery: delivery).refuse(problem)
  }

  /// Sends the end once more, after `cut`.
  ///
  /// - Parameter didEnd: Called when the store has replied, or has failed.
  func endWithProcess(_ didEnd: @escaping @Sendable () -> Void) {
    invariant(run.end != nil, "a process ends before the runs that it cuts")
    worker.context.task { [self] in
      // The run may have had its own end since.
      if let end = run.end { await send(atEnd: end) }
      didEnd()
    }
  }

  private func send(atEnd end: RecordRun.End) async {
    let (logger, metadata) = (worker.environment.logger, metadata)
    do throws(StoreError) {
      if case .released = end { await worker.waitForCopies(of: claim) }
      let outcome = try await end.send(of: claim, to: worker.store)
      switch (outcome, end) {
      case (.done, .unknown):
        logger.warning(
          "a record is marked unknown, since this process ends",
          metadata: metadata.merging(["cause": "\(LossCause.shutdown.rawValue)"]) { own, _ in own })
      case (.done, _):
        logger.info("the end of a run is stored as this process ends", metadata: metadata)
      // The run's own end came first.
      case _ where run.end == nil: break
      default:
        worker.countSuperseded(outcome)
        logger.warning(
          "a run of this process had lost its record to another owner when the process ended",
          metadata: metadata)
      }
    } catch {
      logger.error(
        "the end of a run could not be stored at shutdown; its lease will lapse, and its outcome be unknown",
        metadata: metadata.merging(["error": "\(error)"]) { _, new in new })
    }
  }
}

extension RecordRun.End {
  /// Sends the end to the store. A release waits before (`Worker.waitForCopies`).
  func send(of claim: Claim, to store: some RecordStore) async throws(StoreError) -> OwnerOutcome {
    switch self {
    case .completed(let completion): try await store.complete(claim, with: completion).outcome
    case .released(let release): try await store.release(claim, release)
    case .unknown(let cause): try await store.markUnknown(claim, because: cause)
    }
  }
}
