import Idempotency
import NIOCore
import Platform
import Testing
import Wire

@testable import Proxy

/// The ends of runs that the store does not take at once.
struct OwnedRecordTests {
  @Test(arguments: [nil, StoreError.fateUnknown("cut"), .unavailable("away")] as [StoreError?])
  func `a client gets a response of class unknown, whether or not the store takes the mark`(
    _ failure: StoreError?
  ) throws {
    let harness = WorkerHarness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.store.markFailure = failure
    harness.backend.status = 502
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.status == 502 && client.fields.contains("Idempotency-Status: unknown\r\n"))
    #expect(harness.store.markCount == 1)
    #expect(harness.store.completions.isEmpty && harness.store.releases.isEmpty)
    #expect(harness.backend.requests.count == 1 && harness.worker.isIdle)
  }

  @Test(arguments: [true, false])
  func `a process that ends repeats an outcome to which the store has not replied`(isTaken: Bool) throws {
    let harness = WorkerHarness()
    let (store, worker) = (harness.store, harness.worker)
    store.onClaim = { .success(.granted($0.granted)) }
    store.holdsCompletions = true
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.response == nil && store.completions.count == 1)
    store.holdsCompletions = false
    worker.context.task { await worker.abandon() }
    harness.run()
    #expect(store.completions.count == 2 && store.markCount == 0)
    let reply: Result<CompletionReply, StoreError> =
      isTaken ? .success(CompletionReply(outcome: .done, record: nil)) : .failure(.unavailable("away"))
    for held in store.heldCompletions { held.resume(returning: reply) }
    harness.run()
    #expect(client.status == 201 && store.markCount == 0 && harness.backend.requests.count == 1)
  }
}
