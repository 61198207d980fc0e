import Idempotency
import NIOCore
import Platform
import Telemetry
import Testing
import Wire

@testable import Proxy

/// Outcomes of overtaken runs, which are kept until a record has them.
struct PendingOutcomeTests {
  private static let request = ClaimRequest(
    id: RecordID(Digest256.sha256(of: Array("k".utf8))), owner: OwnerToken(high: 1, low: 2),
    fingerprint: Fingerprint(recipe: Recipe(), digest: Digest256.sha256(of: Array("body".utf8))),
    lease: .seconds(60), takeOver: .never, unknownRetention: .seconds(60), remember: .seconds(60))

  private static let lost = "semel_outcomes_lost_total{route=\"orders\"} 1\n"

  private static func harness() -> WorkerHarness {
    WorkerHarness(
      RoutePolicy(
        name: "orders", match: RouteMatch(),
        upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none"))))
  }

  private static func completion(bytes: Int = 2) -> Completion {
    let body = ByteBuffer(repeating: 0x78, count: bytes)
    return Completion(
      outcome: .whole(RecordedResponse(status: 201, fields: ByteBuffer(), body: body)), retention: 1000,
      remember: 1000)
  }

  /// Has the worker keep an outcome of the record.
  private static func keep(_ harness: WorkerHarness, _ completion: Completion = completion()) {
    var entry = AccessLogEntry()
    entry.routeNumber = 1
    let outcome = OvertakenOutcome(completion, of: request.granted)
    harness.worker.keepOvertaken(PendingOutcome(outcome, .taken(request), of: entry))
    harness.run()
  }

  @Test func `an outcome is recorded at once if its record is free`() {
    let harness = Self.harness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    Self.keep(harness)
    #expect(harness.store.completions == [Self.completion()] && harness.store.releases.isEmpty)
    #expect(harness.worker.isIdle && harness.environment.captures.taken == 0)
    #expect(harness.store.claims.first?.owner != Self.request.owner)
  }

  @Test func `a stop waits for an outcome whose record another owner has`() async {
    let harness = Self.harness()
    harness.store.onClaim = { _ in .success(.taken(.inFlight(leaseLeft: .seconds(60), attempt: 2))) }
    Self.keep(harness)
    #expect(!harness.worker.isIdle && harness.environment.captures.taken > 0)
    harness.worker.context.task { [worker = harness.worker] in await worker.abandon() }
    harness.run()
    #expect(harness.store.completions.isEmpty)
    #expect(await harness.page().contains(Self.lost))
  }

  @Test func `a stop stores an outcome whose record was granted once more`() async {
    let harness = Self.harness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.store.onComplete = { _, _ in .failure(.unavailable("away")) }
    Self.keep(harness)
    #expect(!harness.worker.isIdle && harness.store.completions.count == 1)
    harness.store.onComplete = { _, _ in .success(CompletionReply(outcome: .done, record: nil)) }
    harness.worker.context.task { [worker = harness.worker] in await worker.abandon() }
    harness.run()
    #expect(harness.store.completions.count == 2)
    #expect(await !harness.page().contains(Self.lost))
  }

  @Test func `an outcome is claimed for again if the store was away for longer than the lease of its claim`()
  {
    let harness = Self.harness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.store.onComplete = { _, _ in
      .success(CompletionReply(outcome: .lost(.inFlight(leaseLeft: .seconds(60), attempt: 2)), record: nil))
    }
    Self.keep(harness)
    #expect(harness.store.completions.count == 1 && !harness.worker.isIdle)
    guard case .taken(let request)? = harness.worker.pendingOutcomes.values.first?.record else {
      Issue.record("the outcome is not kept")
      return
    }
    #expect(request.owner != harness.store.claims[0].owner && request.takeOver == .never)
  }

  /// The replies to a claim and to a completion by which a record wants the outcome no more.
  @Test(
    arguments: [
      (ClaimOutcome.mismatch, nil), (.otherRecipe(Recipe()), nil),
      (nil, OwnerOutcome.lost(.absent)), (nil, .lost(.released(attempt: 1))), (nil, .replaced),
    ] as [(ClaimOutcome?, OwnerOutcome?)])
  func `an outcome that no record takes is counted as lost`(claim: ClaimOutcome?, end: OwnerOutcome?) async {
    let harness = Self.harness()
    harness.store.onClaim = { .success(claim ?? .granted($0.granted)) }
    harness.store.onComplete = { _, _ in
      .success(CompletionReply(outcome: end ?? .done, record: nil))
    }
    Self.keep(harness)
    #expect(harness.worker.isIdle)
    #expect(await harness.page().contains(Self.lost))
  }

  @Test func `an outcome that comes after a stop has begun is counted as lost`() async {
    let harness = Self.harness()
    harness.worker.context.task { [worker = harness.worker] in await worker.abandon() }
    harness.run()
    Self.keep(harness)
    #expect(harness.store.claims.isEmpty && harness.worker.isIdle)
    #expect(await harness.page().contains(Self.lost))
  }

  @Test func `an outcome without memory for its response is recorded without it`() {
    let harness = Self.harness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    Self.keep(harness, Self.completion(bytes: 1 << 20))
    #expect(harness.store.completions.map(\.outcome) == [.statusOnly(status: 201, location: nil)])
  }

  @Test func `an outcome without any memory is counted as lost`() async {
    let harness = Self.harness()
    while harness.environment.captures.holdOutcome(1024, of: 1 << 20) {}
    Self.keep(harness)
    #expect(harness.store.claims.isEmpty && harness.worker.isIdle)
    #expect(await harness.page().contains(Self.lost))
  }

  @Test func `a record that was forgotten meanwhile is given back`() {
    let harness = Self.harness()
    let fence = Fence(until: StoreInstant(milliseconds: 9), left: 5)
    harness.store.onClaim = { .success(.granted($0.granted(over: fence))) }
    Self.keep(harness)
    #expect(harness.store.completions.isEmpty)
    #expect(harness.worker.pendingOutcomes.isEmpty && harness.store.releases.count == 1)
  }

  @Test func `a claim that was never used is given back even if there is no memory for a long wait`() {
    let harness = Self.harness()
    while harness.environment.captures.holdOutcome(1024, of: 1 << 20) {}
    harness.worker.giveBack(granted: Self.request.granted)
    harness.run()
    #expect(harness.store.releases == [.deleted] && harness.worker.isIdle)
  }

  @Test func `a stop gives back what was not given back before`() {
    let harness = Self.harness()
    harness.store.releaseFailure = ScriptedStore.away
    harness.worker.giveBack(granted: Self.request.granted)
    harness.run()
    // Tried at once, before the client that is refused can come back.
    #expect(harness.store.releases == [.deleted] && !harness.worker.isIdle)
    harness.store.releaseFailure = nil
    harness.worker.context.task { [worker = harness.worker] in await worker.abandon() }
    harness.run()
    #expect(harness.store.releases == [.deleted, .deleted])
  }

  @Test func `a record that has an outcome keeps it`() async {
    let harness = Self.harness()
    harness.store.onClaim = { _ in .success(.taken(.expired(attempt: 2))) }
    Self.keep(harness)
    #expect(harness.store.completions.isEmpty && harness.worker.isIdle)
    #expect(await !harness.page().contains(Self.lost))
  }
}
