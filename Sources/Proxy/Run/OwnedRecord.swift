import Idempotency
import Logging
import NIOCore
import Platform
import Telemetry
import Wire

/// The record of a request that was granted its claim, until the store has its end.
struct OwnedRecord<Store: RecordStore, Backend: Upstream> {
  let call: KeyedCall
  let lease: LeaseKeeper<Store>
  let runner: RequestRunner<Store, Backend>

  private var worker: Worker<Store, Backend> { runner.worker }
  private var delivery: Delivery { runner.delivery }

  /// Stores a final outcome. If the store gives no reply, the write is repeated in the background while the lease is
  /// renewed: no retry runs because a record could not be written.
  @inline(never)
  func complete(_ completion: Completion) async -> ClaimLifecycle.StoredAction {
    let command = LastCommand.complete(completion)
    invariant(lease.claim.id == call.id, "an outcome is recorded by the claim of another request")
    // A process that ends now repeats it: the outcome is not lost.
    lease.lastCommand = command
    if lease.mayBeOvertaken { lease.unstored = worker.environment.takeOvers.storing(lease.claim) }
    do throws(StoreError) {
      let reply = try await worker.store.complete(lease.claim, with: completion)
      lease.note(command.end, reply.outcome)
      worker.endLease(lease)
      lease.unstored = nil
      if let record = reply.record {
        delivery.logEntry.timeToSuccessMilliseconds = (record.recordedAt - lease.claim.firstSeen).count
        if case .whole = completion.outcome, case .statusOnly = record.outcome {
          worker.noteUnkept(.tooSlow, of: lease)
        }
      }
      worker.countSuperseded(reply.outcome)
      worker.noteRejected(reply.outcome, of: completion, lease)
      return call.lifecycle.stored(reply.outcome)
    } catch {
      lease.isEndUnstored = true
      let action = call.lifecycle.storingFailed()
      let isKept = keepStoring(completion, after: error)
      if isKept, case .respondAndKeepStoring = action {
        lease.note(command.end)
      } else {
        lease.note(.unknown)
      }
      return action
    }
  }

  /// Counts an intent that a final response has ended because no further attempt is allowed.
  @inline(never)
  func countLastAttempt(_ status: Int, _ steering: Steering, after action: ClaimLifecycle.StoredAction) {
    switch action {
    case .respond, .respondAndKeepStoring: break
    default: return
    }
    guard call.lifecycle.endsAttempts(status: status, steering: steering, to: lease.claim) else { return }
    worker.metrics.add(.attemptsExhausted, route: call.route.number)
  }

  /// Keeps an outcome in memory until the store takes it: without its body if there is no room for that. If there is
  /// none at all, the lease lapses, and the record is unknown.
  ///
  /// - Returns: Whether it is kept.
  @inline(never)
  private func keepStoring(_ completion: Completion, after error: StoreError) -> Bool {
    // The store's failures are logged by `MeasuredStore`, not once a request.
    worker.environment.logger.debug(
      "an outcome could not be stored yet; it is tried again", metadata: ["error": "\(error)"])
    // The response leaves now. The outcome takes over its memory.
    delivery.releaseCapture()
    var pending = completion
    if !worker.takeMemory(toKeep: pending.outcome.size, of: lease) {
      if case .whole = pending.outcome { worker.noteUnkept(.noMemory, of: lease) }
      pending.outcome = pending.outcome.withoutResponse
      guard worker.takeMemory(toKeep: pending.outcome.size, of: lease) else {
        endWithoutMemory()
        return false
      }
    }
    worker.repeatInBackground(.complete(pending), of: lease)
    return true
  }

  /// Lets the lease lapse because there is no memory for the end of the run.
  private func endWithoutMemory() {
    lease.unstored = nil
    noteLoss(.noMemory)
    worker.endLease(lease)
  }

  /// Releases the record, once no copy of its claim can take it again.
  @inline(never)
  func release(_ decided: Release) async -> ClaimLifecycle.StoredAction {
    let claim = lease.claim
    let release = lease.lastRelease(decided)
    // A process that ends now repeats the release. A mark behind it would make the deleted record anew.
    let command = LastCommand.release(release)
    lease.lastCommand = command
    await worker.waitForCopies(of: claim)
    do throws(StoreError) {
      let outcome = try await worker.store.release(claim, release)
      lease.note(command.end, outcome)
      worker.endLease(lease)
      worker.countSuperseded(outcome)
      return call.lifecycle.stored(outcome)
    } catch {
      lease.isEndUnstored = true
      guard worker.takeMemory(toKeep: 0, of: lease) else {
        lease.note(.unknown)
        endWithoutMemory()
        return call.lifecycle.releaseFailed()
      }
      lease.note(command.end)
      worker.repeatInBackground(command, of: lease)
      return call.lifecycle.releaseFailed()
    }
  }

  /// Notes that the outcome was lost. The delivery of a batch has no key, but each of its items has.
  func noteLoss(_ cause: LossCause, _ more: Logger.Metadata = [:]) {
    var more = more
    if call.route.policy.batch != nil {
      let digests = worker.environment.digests
      more["key"] = "\(call.key.digestText(by: digests))"
      more["caller"] = "\(call.caller.digestText(by: digests))"
    }
    worker.noteLoss(of: lease, cause, more)
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
    let outcome = await markUnknown(because: cause)
    worker.endLease(lease)
    guard let outcome else { return call.lifecycle.markFailed() }
    return call.lifecycle.stored(outcome)
  }

  /// Marks the record unknown because the backend has not responded in time. Returns `nil` if the client is refused for
  /// that, and a late response is awaited.
  @inline(never)
  func markUnknownAfterTimeout() async -> ClaimLifecycle.StoredAction? {
    noteLoss(LossCause(.timedOut), ["reason": "\(UpstreamFailure.timedOut)"])
    guard let outcome = await markUnknown(because: LossCause(.timedOut)),
      let action = call.lifecycle.marked(outcome)
    else { return nil }
    worker.endLease(lease)
    return action
  }

  /// Marks the record unknown. If the store gives no reply, the lease lapses, which has the same effect.
  ///
  /// - Returns: The store's reply; `nil` if it gave none.
  @inline(never)
  private func markUnknown(because cause: LossCause) async -> OwnerOutcome? {
    lease.stopRenewing()
    lease.note(.unknown)
    do throws(StoreError) {
      let outcome = try await worker.store.markUnknown(lease.claim, because: cause)
      worker.countSuperseded(outcome)
      return outcome
    } catch {
      lease.isEndUnstored = true
      worker.environment.logger.debug("a record was not marked unknown", metadata: ["error": "\(error)"])
      return nil
    }
  }
}
