import Idempotency
import Platform
import Testing
import Wire

@testable import Proxy

/// Claims that were never used, which are given back.
struct UnusedClaimTests {
  private static let claim = ClaimRequest(
    id: RecordID(Digest256.sha256(of: Array("k".utf8))), owner: OwnerToken(high: 1, low: 2),
    fingerprint: Fingerprint(recipe: Recipe(), digest: Digest256.sha256(of: Array("body".utf8))),
    lease: .seconds(60), takeOver: .never, unknownRetention: .seconds(60), remember: .seconds(60)
  ).granted

  private static func giveBack(_ harness: WorkerHarness) {
    let policy = RoutePolicy(
      name: "orders", match: RouteMatch(),
      upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none")))
    harness.worker.context.task { [worker = harness.worker] in
      await worker.undo(.givenBack(claim, by: policy))
    }
  }

  @Test func `a claim that was never used is given back even if there is no memory for a long wait`() {
    let harness = WorkerHarness()
    while harness.worker.takeMemory(1024) {}
    Self.giveBack(harness)
    harness.run()
    #expect(harness.store.releases == [.deleted] && harness.worker.isIdle)
  }

  @Test func `a stop gives back what was not given back before`() {
    let harness = WorkerHarness()
    harness.store.releaseFailure = ScriptedStore.away
    Self.giveBack(harness)
    harness.run()
    // Tried at once, before the client that is refused can come back.
    #expect(harness.store.releases == [.deleted] && !harness.worker.isIdle)
    harness.store.releaseFailure = nil
    harness.worker.context.task { [worker = harness.worker] in await worker.abandon() }
    harness.run()
    #expect(harness.store.releases == [.deleted, .deleted])
  }
}
