import Idempotency
import NIOCore
import Platform
import Testing
import Wire

@testable import Proxy

/// Deliveries of an intent whose outcome this process has, while the store does not, and outcomes that the store does
/// not take.
struct UnstoredOutcomeTests {
  private static let inFlight = Standing.inFlight(leaseLeft: .seconds(60), attempt: 2)
  private static let lost = "semel_outcomes_lost_total{route=\"orders\"} 1\n"

  private static func harness(
    probe: (any OutcomeProbe)? = nil, _ change: (inout RoutePolicy) -> Void = { _ in }
  ) -> WorkerHarness {
    var policy = RoutePolicy(
      name: "orders", match: RouteMatch(),
      upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none")))
    policy.caller = CallerPolicy(parts: [])
    change(&policy)
    let harness = WorkerHarness(policy, probe: probe)
    harness.store.onClaim = { .success(.granted($0.granted)) }
    return harness
  }

  /// Has a run end while the store takes no outcome; its client has the response.
  private static func endUnstored(_ harness: WorkerHarness) throws {
    harness.store.onComplete = { _, _ in .failure(ScriptedStore.away) }
    #expect(try harness.deliver("{}", key: "k").status == 201)
  }

  private static func isHeld(_ client: ScriptedClient) -> Bool {
    client.status == 409 && client.text.contains(#""code":"in_flight""#)
  }

  /// The store would grant the claim, since it has lost the record.
  @Test func `no claim is sent while the outcome waits for the store`() throws {
    let harness = Self.harness { $0.duplicates = .reject }
    try Self.endUnstored(harness)
    #expect(Self.isHeld(try harness.deliver("{}", key: "k")))
    #expect(harness.store.claims.count == 1 && harness.backend.requests.count == 1)
    // Another payload is the store's to refuse, and another key is nobody's.
    let id = harness.store.claims[0].id
    harness.store.onClaim = { .success($0.id == id ? .mismatch : .granted($0.granted)) }
    #expect(try harness.deliver(#"{"amount":2}"#, key: "k").text.contains("payload_mismatch"))
    #expect(try harness.deliver("{}", key: "other").status == 201)
    #expect(harness.store.claims.count == 3 && harness.backend.requests.count == 2)
    // As any claim while the store fails, without a wait for its reply.
    harness.environment.takeOvers.storeFailed()
    #expect(try harness.deliver("{}", key: "k").text.contains(#""code":"store_unavailable""#))
    #expect(harness.store.claims.count == 3)
  }

  /// The backend responds after its time-out, when the lease is no longer renewed.
  @Test func `a claim waits for an outcome that is on its way to the store`() throws {
    let harness = Self.harness { $0.duplicates = .reject }
    let store = harness.store
    store.holdsCompletions = true
    harness.backend.failures = [.timedOut]
    let late = try harness.deliver("{}", key: "k")
    #expect(late.text.contains(#""code":"outcome_unknown""#) && store.heldCompletions.count == 1)
    let record = CompletedRecord(
      outcome: store.completions[0].outcome, recordedAt: StoreInstant(milliseconds: 1000),
      expiresAt: StoreInstant(milliseconds: 9000), remaining: 8000, attempt: 1)
    store.onClaim = { _ in .success(.taken(.completed(record))) }
    #expect(Self.isHeld(try harness.deliver("{}", key: "k")) && store.claims.count == 1)
    store.heldCompletions[0].resume(returning: .success(CompletionReply(outcome: .done, record: record)))
    harness.run()
    let client = try harness.deliver("{}", key: "k")
    #expect(client.status == 201 && client.fields.contains("Idempotency-Status: replayed\r\n"))
    #expect(store.claims.count == 2 && harness.backend.requests.count == 1)
    #expect(harness.worker.isIdle && harness.environment.unstored.isEmpty)
  }

  /// The claim was sent before.
  @Test func `a granted claim does not run beside an outcome that is on its way to the store`() throws {
    let harness = Self.harness()
    harness.store.onClaim = {
      harness.environment.unstored.hold($0.changed(owner: OwnerToken(high: 1, low: 2)).granted)
      return .success(.granted($0.granted(over: nil, attempt: 2, followsUnknown: true)))
    }
    let client = try harness.deliver("{}", key: "k")
    #expect(client.status == 409 && client.text.contains(#""code":"outcome_unknown""#))
    #expect(harness.store.markCount == 1 && harness.store.releases.isEmpty)
    #expect(harness.backend.requests.isEmpty)
  }

  /// The backend has stated that the attempt was executed, while an earlier owner's late outcome is on its way.
  @Test func `a record whose outcome waits for the store is not taken over`() throws {
    let unknown = Standing.unknown(age: .seconds(3700), attempt: 1)
    let harness = Self.harness(probe: StatingProbe()) {
      $0.duplicates = .reject
      $0.onUnknown = .reconcile
      $0.reconcile = ReconcilePolicy(path: "/orders/{request_id}")
    }
    let store = harness.store
    store.onClaim = { _ in .success(.taken(.unknown(age: .seconds(3600), attempt: 1))) }
    store.onFind = { [environment = harness.environment] in
      environment.unstored.hold(store.claims[0].changed(owner: OwnerToken(high: 1, low: 2)).granted)
      return .success(unknown)
    }
    let client = try harness.deliver("{}", key: "k")
    #expect(Self.isHeld(client), "\(client.text)")
    #expect(store.claims.count == 1 && harness.backend.requests.isEmpty)
  }

  /// A backend that has executed everything it is asked about.
  private struct StatingProbe: OutcomeProbe {
    func send(_ query: ProbeQuery) async -> ProbeResponse? { ProbeResponse(status: 200, body: ByteBuffer()) }
  }

  @Test func `claims wait for each run whose outcome is not stored, and for no other record or payload`() {
    let unstored = UnstoredOutcomes()
    let (mine, other) = (Self.claim("k"), Self.claim("other"))
    let later = Self.claim("k", owner: 2)
    for claim in [mine, later, mine] { unstored.hold(claim) }
    #expect(unstored.claim(of: mine.id, mine.fingerprint) == mine)
    #expect(unstored.claim(of: other.id, other.fingerprint) == nil)
    let payload = Fingerprint(recipe: Recipe(), digest: Digest256.sha256(of: Array("another".utf8)))
    #expect(unstored.claim(of: mine.id, payload) == nil)
    for claim in [other, mine, mine] { unstored.leave(claim) }
    #expect(unstored.claim(of: mine.id, mine.fingerprint) == later && !unstored.isEmpty)
    unstored.leave(later)
    #expect(unstored.claim(of: mine.id, mine.fingerprint) == nil && unstored.isEmpty)
  }

  private static func claim(_ text: String, owner: UInt64 = 1) -> Claim {
    ClaimRequest(
      id: RecordID(Digest256.sha256(of: Array(text.utf8))), owner: OwnerToken(high: 1, low: owner),
      fingerprint: Fingerprint(recipe: Recipe(), digest: Digest256.sha256(of: Array("body".utf8))),
      lease: .seconds(60), takeOver: .never, unknownRetention: .seconds(60), remember: .seconds(60)
    ).granted
  }

  /// The record has another owner, whatever became of that one.
  @Test(
    arguments: [
      .lost(inFlight), .lost(.released(attempt: 2)), .lost(.unknown(age: 5, attempt: 2)),
    ] as [OwnerOutcome])
  func `an outcome that another owner's record does not take is counted as lost`(reply: OwnerOutcome)
    async throws
  {
    let harness = Self.harness()
    harness.store.onComplete = { _, _ in .success(CompletionReply(outcome: reply, record: nil)) }
    let client = try harness.deliver("{}", key: "k")
    #expect(client.status == 409 && client.text.contains(#""code":"outcome_unknown""#), "\(client.text)")
    #expect(harness.store.claims.count == 1 && harness.store.completions.count == 1)
    #expect(harness.worker.isIdle && harness.environment.unstored.isEmpty)
    let page = await harness.page()
    #expect(page.contains(Self.lost) && page.contains("semel_superseded_owners_total 1\n"))
  }

  /// An operator's decision counts more than an outcome, and another outcome as much.
  @Test(
    arguments: [
      .lost(.released(attempt: 1)), .lost(.absent), .lost(.expired(attempt: 2)), .replaced,
    ] as [OwnerOutcome])
  func `an outcome whose record was decided about is not counted as lost`(reply: OwnerOutcome) async throws {
    let harness = Self.harness()
    harness.store.onComplete = { _, _ in .success(CompletionReply(outcome: reply, record: nil)) }
    #expect(try harness.deliver("{}", key: "k").status == 409)
    let page = await harness.page()
    #expect(!page.contains(Self.lost) && page.contains("semel_superseded_owners_total 1\n"))
  }
}
