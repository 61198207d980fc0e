import Idempotency
import Logging
import Platform

// The outcomes of runs whose records another owner has taken over.
extension RequestRunner {
  /// Keeps the outcome of a run that was overtaken, if this delivery ends before a record has it. Its client may be gone,
  /// or wait for no other delivery.
  func keepOvertakenOutcome(of call: KeyedCall, _ request: ClaimRequest) {
    guard let completion = call.lifecycle.overtakenOutcome else { return }
    worker.record(completion, ofOvertaken: request)
  }
}

extension Worker {
  /// The time for which an overtaken outcome is kept: much longer than another owner's run.
  private static var overtakenSpan: Milliseconds { .seconds(600) }

  /// Records the outcome of an overtaken run once the other owner has given the record back. If that ends it with an
  /// outcome of its own, that one counts.
  @inline(never)
  func record(_ completion: Completion, ofOvertaken request: ClaimRequest) {
    context.task { [self] in
      var pause: Int64 = 50
      let end = BootInstant.now + Self.overtakenSpan
      while !isStopping, BootInstant.now < end {
        await context.sleep(milliseconds: Int64.random(in: 1...pause))
        guard await isStillTaken(request.changed(owner: newOwner(), takeOver: .never), completion) else {
          return
        }
        pause = min(pause * 2, 2000)
      }
    }
  }

  /// Claims the record to complete it. True if another owner still has it, or the store gave no reply.
  private func isStillTaken(_ request: ClaimRequest, _ completion: Completion) async -> Bool {
    do throws(StoreError) {
      switch try await store.claim(request) {
      case .granted(let claim):
        guard try await store.complete(claim, with: completion).outcome == .done else { return false }
        environment.known.end(claim.id, for: max(completion.retention, completion.remember))
        environment.logger.info(
          "the outcome of an overtaken run is recorded",
          metadata: ["record": "\(claim.id.text)", "attempt": .stringConvertible(claim.attempt)])
        return false
      case .taken(.inFlight), .taken(.unknown): return true
      case .taken, .mismatch, .otherRecipe: return false
      }
    } catch {
      // The store may have granted it: the lease of a claim that nobody uses lapses into an unknown outcome.
      if case .fateUnknown = error { giveBack(request) }
      if case .unreadable = error { return false }
      return true
    }
  }
}
