import Idempotency
import Logging
import Loop
import NIOCore
import Telemetry

/// How an owner tells the store, and how it goes on telling where the store gives no answer.
extension RequestRunner {
  /// Stores a final outcome. Where the store gives no answer, it is tried again in the background, and the lease
  /// renewed meanwhile: no retry runs because a record could not be written.
  func complete(
    _ completion: Completion, _ held: HeldClaim<Store>, _ call: KeyedCall
  ) async -> Exchange.StoredAction {
    do throws(StoreError) {
      let reply = try await worker.store.complete(held.claim, with: completion)
      held.note(completion.ownEnd, reply.outcome)
      worker.end(held)
      if let record = reply.record {
        delivery.record.timeToSuccessMilliseconds = (record.recordedAt - held.claim.firstSeen).count
      }
      return call.exchange.stored(told(reply.outcome))
    } catch {
      let action = call.exchange.storingFailed(error)
      if case .refuseAndKeepStoring = action { held.note(.unknown) } else { held.note(completion.ownEnd) }
      keepStoring(completion, held, after: error)
      return action
    }
  }

  @inline(never)
  private func keepStoring(_ completion: Completion, _ held: HeldClaim<Store>, after error: StoreError) {
    // The store's failures are logged by `MeasuredStore`, not once a request.
    environment.logger.debug(
      "an outcome could not be stored yet; it is tried again", metadata: ["error": "\(error)"])
    keepTelling(held, completion.ownEnd) { store throws(StoreError) in
      try await store.complete(held.claim, with: completion).outcome
    }
  }

  /// Gives a record back, once no copy of its claim can take it again.
  @inline(never)
  func giveBack(
    _ held: HeldClaim<Store>, _ release: Release, _ call: KeyedCall
  ) async -> Exchange.StoredAction {
    held.stopRenewing()
    await worker.outlastCopies(of: held.claim)
    do throws(StoreError) {
      let outcome = try await worker.store.release(held.claim, release)
      held.note(release.ownEnd, outcome)
      worker.end(held)
      return call.exchange.stored(told(outcome))
    } catch {
      held.note(release.ownEnd)
      keepTelling(held, release.ownEnd) { store throws(StoreError) in
        try await store.release(held.claim, release)
      }
      return call.exchange.stored(.done)
    }
  }

  /// Marks a record unknown because the backend's own answer says so.
  @inline(never)
  func markUnknown(_ held: HeldClaim<Store>, _ call: KeyedCall) async -> Exchange.StoredAction {
    held.stopRenewing()
    held.note(.unknown)
    defer { worker.end(held) }
    do throws(StoreError) {
      let outcome = try await worker.store.markUnknown(held.claim)
      return call.exchange.stored(told(outcome))
    } catch {
      return call.exchange.stored(.done)
    }
  }

  /// Marks a record unknown. Where the store gives no answer the lease lapses, which says the same.
  @inline(never)
  func markUnknown(_ held: HeldClaim<Store>) async {
    held.stopRenewing()
    held.note(.unknown)
    do throws(StoreError) {
      _ = told(try await worker.store.markUnknown(held.claim))
    } catch {
      environment.logger.debug("a record was not marked unknown", metadata: ["error": "\(error)"])
    }
  }

  /// Marks a record unknown with a claim that was never used, since a run without a record was lost. If the store gives
  /// no reply, the lease lapses, which says the same, and the run stays known as lost.
  @inline(never)
  func markUnknown(unused claim: Claim) async {
    do throws(StoreError) {
      guard case .done = told(try await worker.store.markUnknown(claim)) else { return }
      environment.known.change(claim.id) { known, _ in known = known?.markedUnknown() }
    } catch {
      environment.logger.debug("a lost run was not marked unknown", metadata: ["error": "\(error)"])
    }
  }

  /// A claim whose reply was lost may have been granted. It was never used, so it is given back, however long it takes.
  func giveBack(_ request: ClaimRequest) { giveBack(unused: request.unusedClaim(), .remembered) }

  /// Gives back a claim that was granted and never used. A record that it made is deleted: its payload may be another
  /// than that of the run for which the claim was refused.
  func giveBack(granted claim: Claim) {
    giveBack(unused: claim, claim.onlyRejectedSoFar ? .deleted : .remembered)
  }

  /// Gives back a claim that was never used, once no copy of it can take it again, however long it takes.
  private func giveBack(unused claim: Claim, _ release: Release) {
    let worker = worker
    worker.context.task {
      await worker.outlastCopies(of: claim)
      await Self.repeatUntilTold(worker) { store throws(StoreError) in
        try await store.release(claim, release)
      }
    }
  }

  /// An owner that has lost its record was overtaken while it lived.
  private func told(_ outcome: OwnerOutcome) -> OwnerOutcome {
    if case .lost = outcome { worker.metrics.add(.zombies) }
    return outcome
  }

  private func keepTelling(
    _ held: HeldClaim<Store>, _ end: KnownRecord.OwnEnd,
    _ tell: @escaping @Sendable (Store) async throws(StoreError) -> OwnerOutcome
  ) {
    let worker = worker
    worker.context.task {
      await Self.repeatUntilTold(worker) { store throws(StoreError) in
        let outcome = try await tell(store)
        held.note(end, outcome)
        return outcome
      }
      worker.end(held)
    }
  }

  /// Asks again with growing pauses, up to two seconds and with full jitter, until the store has answered; no longer
  /// than `Fence.storing`, since a fence must outlast it.
  private static func repeatUntilTold(
    _ worker: Worker<Store, Backend>, _ tell: @Sendable (Store) async throws(StoreError) -> OwnerOutcome
  ) async {
    var pause: Int64 = 50
    let end = BootInstant(nanoseconds: bootTimeNanoseconds()) + Fence.storing
    while !worker.isStopping, BootInstant(nanoseconds: bootTimeNanoseconds()) < end {
      await worker.context.sleep(milliseconds: Int64.random(in: 1...pause))
      do throws(StoreError) {
        if case .lost = try await tell(worker.store) { worker.metrics.add(.zombies) }
        return
      } catch {
        if case .unreadable = error { return }
      }
      pause = min(pause * 2, 2000)
    }
  }
}

extension Completion {
  /// The end that it gives a record.
  fileprivate var ownEnd: KnownRecord.OwnEnd { .completed(max(retention, remember)) }
}

extension Release {
  /// The end that it gives a record.
  fileprivate var ownEnd: KnownRecord.OwnEnd { self == .deleted ? .deleted : .released }
}
