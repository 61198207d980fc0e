import Idempotency
import Logging
import Platform
import Telemetry

// The outcomes of runs whose records another owner has taken over.
extension RequestRunner {
  /// Keeps the outcome of a run that was overtaken, if this delivery ends before a record has it. Its client may be gone,
  /// or wait for no other delivery.
  func keepOvertakenOutcome(of call: KeyedCall, _ request: ClaimRequest) {
    if let outcome = call.lifecycle.overtakenOutcome { worker.keep(outcome, .taken(request)) }
  }
}

/// The record of an overtaken run, as far as its owner knows it.
enum OvertakenRecord {
  /// Another owner has it. This is the claim to repeat, each time with another token.
  case taken(ClaimRequest)
  /// The other owner has given it back. It is to be completed with this claim.
  case granted(Claim)
}

extension Worker {
  /// The time for which an overtaken outcome is kept: much longer than another owner's run.
  private static var overtakenSpan: Milliseconds { .seconds(600) }
  /// The memory that an overtaken outcome takes besides its response, in bytes.
  private static var overtakenBytes: Int { 1024 }

  /// Records the outcome of an overtaken run once the other owner has given the record back. If that ends it with an
  /// outcome of its own, that one counts. Without memory for the response it is recorded without it.
  @inline(never)
  func keep(_ outcome: OvertakenOutcome, _ record: OvertakenRecord) {
    var completion = outcome.completion
    guard
      let bytes = keep(completion)
        ?? {
          completion.outcome = completion.outcome.withoutResponse
          return keep(completion)
        }()
    else { return }
    context.task { [self, completion] in
      defer {
        environment.captures.giveKept(bytes)
        environment.counters.change(.bodyBytes, by: -bytes)
      }
      var record = record
      var pause: Int64 = 50
      let end = BootInstant.now + Self.overtakenSpan
      while !isStopping, BootInstant.now < end {
        await context.sleep(milliseconds: Int64.random(in: 1...pause))
        guard let next = await step(record, outcome, completion) else { return }
        record = next
        pause = min(pause * 2, 2000)
      }
    }
  }

  /// Takes memory for an outcome. Returns its bytes; `nil` if there is none.
  private func keep(_ completion: Completion) -> Int? {
    let bytes = completion.outcome.size + Self.overtakenBytes
    guard environment.captures.keep(bytes, of: downstream.limits.bodyMemory) else { return nil }
    environment.counters.change(.bodyBytes, by: bytes)
    return bytes
  }

  /// Claims or completes the record. Returns what is known of it then; `nil` if there is nothing more to do.
  private func step(
    _ record: OvertakenRecord, _ outcome: OvertakenOutcome, _ completion: Completion
  ) async -> OvertakenRecord? {
    do throws(StoreError) {
      switch record {
      case .taken(let request): return try await claim(request, outcome, completion)
      case .granted(let claim): return try await complete(claim, completion)
      }
    } catch {
      if case .unreadable = error { return nil }
      return record
    }
  }

  private func claim(
    _ request: ClaimRequest, _ outcome: OvertakenOutcome, _ completion: Completion
  ) async throws(StoreError) -> OvertakenRecord? {
    let own = request.changed(owner: newOwner(), takeOver: .never)
    let reply: ClaimOutcome
    do throws(StoreError) {
      reply = try await store.claim(own)
    } catch {
      // The store may have granted what was free before.
      if case .fateUnknown = error { giveBack(own) }
      throw error
    }
    switch reply {
    case .granted(let claim) where outcome.isOf(claim):
      // From here on the claim is kept: giving it back would let the request run.
      return await step(.granted(claim), outcome, completion)
    case .granted(let claim):
      giveBack(granted: claim)
      return nil
    case .taken(.inFlight), .taken(.unknown): return .taken(request)
    case .taken, .mismatch, .otherRecipe: return nil
    }
  }

  private func complete(
    _ claim: Claim, _ completion: Completion
  ) async throws(StoreError) -> OvertakenRecord? {
    guard try await store.complete(claim, with: completion).outcome == .done else { return nil }
    environment.known.end(claim.id, for: max(completion.retention, completion.remember))
    environment.logger.info(
      "the outcome of an overtaken run is recorded",
      metadata: ["record": "\(claim.id.text)", "attempt": .stringConvertible(claim.attempt)])
    return nil
  }
}
