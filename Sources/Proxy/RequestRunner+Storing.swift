import Idempotency
import Logging
import Loop
import NIOCore
import Telemetry

/// How an owner tells the store, and how it goes on telling where the store gives no answer.
extension RequestRunner {
  /// Stores a final outcome. Where the store gives no answer, it is tried again in the background, and the lease renewed
  /// meanwhile: no retry runs because a record could not be written.
  func complete(
    _ completion: Completion, _ held: HeldClaim<Store>, _ exchange: inout Exchange
  ) async -> Exchange.StoredAction {
    do throws(StoreError) {
      let outcome = try await worker.store.complete(held.claim, with: completion)
      worker.end(held)
      return exchange.stored(outcome)
    } catch {
      environment.counters.add(.storeErrors)
      environment.logger.error(
        "an outcome could not be stored yet; it is tried again", metadata: ["error": "\(error)"])
      keepTelling(held) { store throws(StoreError) in try await store.complete(held.claim, with: completion) }
      return exchange.storingFailed(error)
    }
  }

  /// Gives a record back.
  func giveBack(
    _ held: HeldClaim<Store>, _ release: Release, _ exchange: inout Exchange
  ) async -> Exchange.StoredAction {
    held.stopRenewing()
    do throws(StoreError) {
      let outcome = try await worker.store.release(held.claim, release)
      worker.end(held)
      return exchange.stored(outcome)
    } catch {
      environment.counters.add(.storeErrors)
      keepTelling(held) { store throws(StoreError) in try await store.release(held.claim, release) }
      return exchange.stored(.done)
    }
  }

  /// Marks a record unknown because the backend's own answer says so.
  func markUnknown(_ held: HeldClaim<Store>, _ exchange: inout Exchange) async -> Exchange.StoredAction {
    held.stopRenewing()
    defer { worker.end(held) }
    do throws(StoreError) {
      return exchange.stored(try await worker.store.markUnknown(held.claim))
    } catch {
      environment.counters.add(.storeErrors)
      return exchange.stored(.done)
    }
  }

  /// Marks a record unknown. Where the store gives no answer the lease lapses, which says the same.
  func markUnknown(_ held: HeldClaim<Store>) async {
    held.stopRenewing()
    do throws(StoreError) {
      _ = try await worker.store.markUnknown(held.claim)
    } catch {
      environment.counters.add(.storeErrors)
    }
  }

  /// A claim whose reply was lost may have been granted. It was never used, so it is given back, however long it takes.
  func giveBack(_ request: ClaimRequest) {
    let claim = request.unusedClaim()
    let worker = worker
    worker.context.task {
      await Self.repeatUntilTold(worker) { store throws(StoreError) in
        try await store.release(claim, .remembered)
      }
    }
  }

  private func keepTelling(
    _ held: HeldClaim<Store>, _ tell: @escaping @Sendable (Store) async throws(StoreError) -> OwnerOutcome
  ) {
    let worker = worker
    worker.context.task {
      await Self.repeatUntilTold(worker, tell)
      worker.end(held)
    }
  }

  /// Asks again with growing pauses, up to two seconds and with full jitter, until the store has answered.
  private static func repeatUntilTold(
    _ worker: Worker<Store, Backend>, _ tell: @Sendable (Store) async throws(StoreError) -> OwnerOutcome
  ) async {
    var pause: Int64 = 50
    while !worker.isStopping {
      await worker.context.sleep(milliseconds: Int64.random(in: 1...pause))
      do throws(StoreError) {
        if case .lost = try await tell(worker.store) { worker.environment.counters.add(.leasesLost) }
        return
      } catch {
        worker.environment.counters.add(.storeErrors)
        if case .unreadable = error { return }
      }
      pause = min(pause * 2, 2000)
    }
  }
}
