import Idempotency
import NIOCore
import Platform
import Testing
import Wire

@testable import Proxy

/// The end of a run whose mark the store does not take.
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
}
