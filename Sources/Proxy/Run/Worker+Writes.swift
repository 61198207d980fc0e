import Idempotency
import Logging
import Platform
import Telemetry
import Wire

// Writes that outlive the deliveries that caused them.
extension Worker {
  /// Waits until the store runs no other copy of the claim any more. In most cases there is none.
  func waitForCopies(of claim: Claim) async {
    guard let copiedUntil = claim.copiedUntil else { return }
    let left = copiedUntil - BootInstant.now
    if left > 0 { await context.sleep(milliseconds: left.count + 1) }
  }

  /// Undoes a claim that was never used. A mark has its reply, if any, when this returns. A release is sent in a task of
  /// its own.
  @inline(never)
  func undo(_ unused: UnusedClaim) async {
    if case .released(let release) = unused.end {
      if unused.isGranted { note(unused, nil) }
      return giveBack(unused.claim, release)
    }
    do throws(StoreError) {
      let outcome = try await unused.end.send(of: unused.claim, to: store)
      countSuperseded(outcome)
      note(unused, outcome)
    } catch {
      // The lease lapses, which has the same effect.
      note(unused, nil)
      environment.logger.debug("a lost run was not marked unknown", metadata: ["error": "\(error)"])
    }
  }

  /// Notes the end for the time when the store is away. A run that was lost without a record counts as lost until the
  /// store has marked it.
  private func note(_ unused: UnusedClaim, _ outcome: OwnerOutcome?) {
    environment.known.change(unused.claim.id) { known, now in
      if case (.unknown, .done) = (unused.end, outcome) { known = known?.markedUnknown() }
      known = known?.ended(by: unused.claim, as: unused.end.known, outcome, now: now)
    }
  }

  /// Gives back a claim once no copy of it can take the record again, however long that takes. Without memory for a
  /// long wait, and in a process that ends, it is tried once.
  private func giveBack(_ claim: Claim, _ release: Release) {
    let bytes = 1024
    let hasMemory = takeMemory(bytes)
    let number = unusedClaims.enter((claim, release))
    context.task { [self] in
      await waitForCopies(of: claim)
      if hasMemory, !isStopping {
        // Another owner's record is no loss: this claim may never have been granted.
        _ = await repeatUntilReply(afterPause: false) { store throws(StoreError) in
          try await store.release(claim, release)
        }
      } else {
        await giveBackOnce(claim, release)
      }
      if hasMemory { giveMemory(bytes) }
      unusedClaims.leave(number)
    }
  }

  /// Gives back a claim that was never used. If the store gives no reply, the lease lapses, as after a crash, and the
  /// outcome of a request that was never sent is unknown.
  func giveBackOnce(_ claim: Claim, _ release: Release) async {
    do throws(StoreError) {
      _ = try await store.release(claim, release)
    } catch {
      environment.logger.warning(
        "an unused claim could not be released: its lease will lapse, and its outcome count as unknown, although its request was never sent",
        metadata: ["record": "\(claim.id.text)", "error": "\(error)"])
    }
  }

  /// Takes memory for what waits for the store; false if there is none.
  func takeMemory(_ bytes: Int) -> Bool {
    environment.bodyMemory.takeOutcome(bytes, within: MemoryLimits(downstream.limits))
  }

  func giveMemory(_ bytes: Int) { environment.bodyMemory.giveOutcome(bytes) }

  /// Repeats a command with growing pauses, up to `WritePace.maxPause` and with full jitter, until the store replies;
  /// no longer than `Fence.storing`, since a fence must outlast it.
  ///
  /// - Parameter pausesFirst: Whether the first try follows a pause too, because one has just failed.
  /// - Returns: The reply; `nil` if there was none, or the record cannot be read.
  func repeatUntilReply(
    afterPause pausesFirst: Bool = true,
    _ command: @Sendable (Store) async throws(StoreError) -> OwnerOutcome
  ) async -> OwnerOutcome? {
    var pauses = Backoff(first: 50, max: WritePace.maxPause.count)
    var isPauseDue = pausesFirst
    let end = BootInstant.now + Fence.storing
    while !isStopping, BootInstant.now < end {
      if isPauseDue { await context.sleep(milliseconds: Int64.random(in: 1...pauses.next())) }
      isPauseDue = true
      do throws(StoreError) {
        return try await command(store)
      } catch {
        if case .unreadable = error { return nil }
      }
    }
    return nil
  }

  /// Counts an owner that has lost its record while it lived.
  func countSuperseded(_ outcome: OwnerOutcome) {
    if outcome != .done { metrics.add(.supersededOwners) }
  }
}
