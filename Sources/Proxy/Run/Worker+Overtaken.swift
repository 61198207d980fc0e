import Idempotency
import Logging
import Platform
import Telemetry

// The outcomes of runs whose records another owner has taken over.
extension RequestRunner {
  /// Keeps the outcome of a run that was overtaken, if this delivery ends before a record has it. Its client may be
  /// gone, or wait for no other delivery.
  func keepOvertakenOutcome(of call: KeyedCall, _ request: ClaimRequest) {
    guard let outcome = call.lifecycle.overtakenOutcome else { return }
    worker.keepOvertaken(PendingOutcome(outcome, .taken(request.withoutReader), of: delivery.logEntry))
  }
}

/// The outcome of a run that was overtaken, and the record that is to have it.
struct PendingOutcome {
  /// The record as far as the process knows it.
  enum Record {
    /// Another owner has it. This is the claim to repeat. Its token stays the same, so that what it was granted by a
    /// lost reply is found again.
    case taken(ClaimRequest)
    /// The other owner has given it back. It is to be completed with this claim.
    case granted(Claim)

    var id: RecordID {
      switch self {
      case .taken(let request): request.id
      case .granted(let claim): claim.id
      }
    }
  }

  var outcome: OvertakenOutcome
  var record: Record
  /// The outcome as deliveries that are granted the record find it; `nil` until it is kept.
  var holding: UnstoredOutcomes.Holding?
  /// The number and the name of the run's route.
  let route: (number: Int, name: String)

  init(_ outcome: OvertakenOutcome, _ record: Record, of entry: borrowing AccessLogEntry) {
    self.outcome = outcome
    self.record = record
    route = (entry.routeNumber, entry.route ?? "")
  }

  /// The memory that it takes, in bytes.
  var size: Int { outcome.completion.outcome.size + 1024 }
}

extension Worker {
  /// Passes the outcome of another run of this process on to a delivery that was granted its record.
  @inline(__always)
  func passOn(_ reply: ClaimReply, to call: KeyedCall) {
    guard case .success(.granted(let claim)) = reply, let outcome = environment.unstored.outcome(for: claim)
    else { return }
    pass(outcome, on: call, claim)
  }

  @inline(never)
  private func pass(_ outcome: OvertakenOutcome, on call: KeyedCall, _ claim: Claim) {
    call.lifecycle.inherit(outcome)
    environment.logger.info(
      "a granted request does not run: this process has its outcome, which no record had",
      metadata: [
        "record": "\(claim.id.text)", "route": "\(call.route.policy.name)",
        "attempt": .stringConvertible(claim.attempt),
      ])
  }

  /// The time for which an overtaken outcome is kept: much longer than another owner's run.
  private static var overtakenSpan: Milliseconds { .seconds(600) }

  /// Records the outcome of an overtaken run once the other owner has given the record back. If that ends it with an
  /// outcome of its own, that one counts. Without memory for the response it is recorded without it.
  @inline(never)
  func keepOvertaken(_ pending: PendingOutcome) {
    var pending = pending
    if case .taken(let request) = pending.record { pending.record = takenRecord(request) }
    guard !isStopping else { return noteDropped(pending, Self.processEnd) }
    if !takeMemory(pending.size) {
      pending.outcome = pending.outcome.withoutResponse
      guard takeMemory(pending.size) else { return noteDropped(pending, "there is no memory for it") }
    }
    pending.holding = environment.unstored.hold(pending.outcome, of: pending.record.id)
    let number = pendingOutcomes.enter(pending)
    context.task { [self, bytes = pending.size] in
      await follow(number)
      pendingOutcomes.leave(number)
      giveMemory(bytes)
    }
  }

  /// The record as another owner's, with a claim that takes nothing over.
  private func takenRecord(_ request: ClaimRequest) -> PendingOutcome.Record {
    .taken(request.changed(owner: newOwner(), takeOver: .never))
  }

  /// Claims or completes the record of an overtaken run until it has an end.
  private func follow(_ number: Int) async {
    var pauses = Self.storePauses
    let end = BootInstant.now + Self.overtakenSpan
    while !isStopping, let pending = pendingOutcomes[number] {
      guard BootInstant.now < end else {
        return noteDropped(pending, "the other owner has had it for too long")
      }
      guard let next = await step(pending) else { return }
      pendingOutcomes[number]?.record = next
      await context.sleep(milliseconds: Int64.random(in: 1...pauses.next()))
    }
  }

  /// Claims or completes the record. Returns what is known of it then; `nil` if there is nothing more to do.
  private func step(_ pending: PendingOutcome) async -> PendingOutcome.Record? {
    do throws(StoreError) {
      switch pending.record {
      case .taken(let request): return try await claim(request, for: pending)
      case .granted(let claim): return try await complete(claim, for: pending)
      }
    } catch {
      guard case .unreadable = error else { return pending.record }
      noteDropped(pending, "the record cannot be read")
      return nil
    }
  }

  private func claim(
    _ request: ClaimRequest, for pending: PendingOutcome
  ) async throws(StoreError) -> PendingOutcome.Record? {
    switch try await store.claim(request) {
    case .granted(let claim) where pending.outcome.isOf(claim):
      // From here on the claim is kept: giving it back would let the request run.
      var granted = pending
      granted.record = .granted(claim)
      return await step(granted)
    case .granted(let claim):
      giveBack(granted: claim)
      return nil
    case .taken(.inFlight), .taken(.unknown), .taken(.released), .taken(.absent): return .taken(request)
    case .taken(.completed), .taken(.expired): return nil
    case .mismatch, .otherRecipe:
      noteDropped(pending, "the record has another payload, or another way of fingerprinting it")
      return nil
    }
  }

  private func complete(
    _ claim: Claim, for pending: PendingOutcome
  ) async throws(StoreError) -> PendingOutcome.Record? {
    let completion = pending.outcome.completion
    let outcome = try await store.complete(claim, with: completion).outcome
    switch outcome {
    case .done:
      environment.known.end(claim.id, for: completion.lifetime)
      environment.logger.info(
        "the outcome of an overtaken run is recorded",
        metadata: ["record": "\(claim.id.text)", "attempt": .stringConvertible(claim.attempt)])
    // The store was away for longer than the lease of this claim.
    case .lost(.inFlight), .lost(.unknown): return takenRecord(claim.request())
    case .lost(.released) where outcome.statesOvertaken(claim): return takenRecord(claim.request())
    case .lost(.completed), .lost(.expired): break
    case .lost(.released), .lost(.absent), .replaced: noteDropped(pending, "an operator has freed the record")
    }
    return nil
  }

  /// Ends the wait for a record, since the process ends: an outcome whose record was granted is stored once more.
  func storeOnceMore(_ pending: PendingOutcome) async {
    if case .granted(let claim) = pending.record,
      (try? await store.complete(claim, with: pending.outcome.completion))?.outcome == .done
    {
      return
    }
    noteDropped(pending, Self.processEnd)
  }

  private static var processEnd: String { "this process ends" }

  /// Notes that the outcome of an overtaken run is not recorded, so that the request may run again if the other owner
  /// gives the record back.
  @inline(never)
  private func noteDropped(_ pending: PendingOutcome, _ reason: String) {
    metrics.add(.outcomesLost, route: pending.route.number)
    environment.logger.error(
      "the outcome of an overtaken run is dropped",
      metadata: [
        "record": "\(pending.record.id.text)", "route": "\(pending.route.name)", "reason": "\(reason)",
      ])
  }
}
