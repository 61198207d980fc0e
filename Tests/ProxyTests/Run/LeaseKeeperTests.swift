import Idempotency
import NIOCore
import Platform
import Testing
import Wire

@testable import Proxy

/// Renewals that are demanded because the store is another one than before, or has another time.
struct LeaseKeeperTests {
  private static let request = request(lease: .seconds(60))

  private static func request(lease: Milliseconds) -> ClaimRequest {
    ClaimRequest(
      id: RecordID(Digest256.sha256(of: Array("k".utf8))), owner: OwnerToken(high: 1, low: 2),
      fingerprint: Fingerprint(recipe: Recipe(), digest: Digest256.sha256(of: Array("body".utf8))),
      lease: lease, takeOver: .never, unknownRetention: .seconds(60), remember: .seconds(60))
  }

  private static func harness() -> WorkerHarness {
    WorkerHarness(
      RoutePolicy(
        name: "orders", match: RouteMatch(),
        upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none"))))
  }

  private static func lease(_ harness: WorkerHarness) throws -> LeaseKeeper<ScriptedStore> {
    LeaseKeeper(
      request.granted, for: try harness.delivery(of: ""), isEnforced: true, store: harness.store,
      context: harness.worker.context, metrics: harness.metrics)
  }

  /// Has the store reply to the renewal under way, and runs what follows from that.
  private static func reply(_ result: Result<OwnerOutcome, StoreError>, _ harness: WorkerHarness) {
    harness.store.renewals.last?.resume(returning: result)
    harness.run()
  }

  @Test(arguments: [Result<OwnerOutcome, StoreError>.failure(.fateUnknown("cut")), .success(.done)])
  func `a renewal that is demanded while one is under way follows it at once`(
    _ first: Result<OwnerOutcome, StoreError>
  ) throws {
    let harness = Self.harness()
    let lease = try Self.lease(harness)
    lease.renewNow()
    harness.run()
    #expect(harness.store.renewals.count == 1)
    lease.renewNow()
    lease.renewNow()
    harness.run()
    #expect(harness.store.renewals.count == 1)
    Self.reply(first, harness)
    try #require(harness.store.renewals.count == 2)
    // No timer fires here, so that a third one would have been demanded.
    Self.reply(.success(.done), harness)
    #expect(harness.store.renewals.count == 2)
    lease.stopRenewing()
  }

  @Test(arguments: [1, 3, 100, 1000])
  func `the leases of a batch are renewed in time, and not all at once`(count: Int) {
    let spans = (0..<count).map {
      LeaseKeeper<ScriptedStore>.firstRenewal(of: .seconds(30), at: $0, among: count).count
    }
    #expect(spans.first == 10_000 && spans.allSatisfy { 5000...10_000 ~= $0 })
    // The timers' precision.
    let perTick = Dictionary(grouping: spans) { $0 / 10 }.mapValues(\.count)
    #expect(perTick.values.max() == max(1, count / 500))
  }

  /// A lease that ran out before its timer fired: the owner stood still, or renewals fail.
  @Test func `a lapse is counted once, also if the run ends before the next renewal`() async throws {
    let harness = Self.harness()
    let claim = Self.request(lease: 1).granted
    let lease = LeaseKeeper(
      claim, for: try harness.delivery(of: ""), isEnforced: true, store: harness.store,
      context: harness.worker.context, metrics: harness.metrics)
    let lapse = claim.requestedAt + 1
    while BootInstant.now < lapse {}
    lease.stopRenewing()
    lease.stopRenewing()
    #expect(await harness.page().contains("semel_leases_lapsed_total 1\n"))
  }

  @Test func `an owner that has lost its record does not renew again`() throws {
    let harness = Self.harness()
    let lease = try Self.lease(harness)
    lease.renewNow()
    harness.run()
    lease.renewNow()
    Self.reply(.success(.lost(.released(attempt: 1))), harness)
    #expect(harness.store.renewals.count == 1)
    lease.renewNow()
    harness.run()
    #expect(harness.store.renewals.count == 1)
  }

  @Test(arguments: [false, true])
  func `a reload that opens a route makes its runs known, with the ends that they have`(hasEnded: Bool) throws
  {
    let harness = Self.harness()
    let worker = harness.worker
    let route = Route(
      policy: RoutePolicy(
        name: "orders", match: RouteMatch(),
        upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none"))), index: 0)
    let lease = worker.keepLease(of: Self.request.granted, for: try harness.delivery(of: ""), by: route)
    let known = harness.environment.known
    // The store did not take the outcome, which is sent again.
    if hasEnded { lease.note(.completed(.seconds(60))) }
    #expect(!known.contains(Self.request.id))
    worker.noteRuns()
    let isRunning = known.change(Self.request.id) { record, _ in record?.isRunningHere }
    #expect(isRunning == !hasEnded)
    if !hasEnded { lease.note(.deleted, .done) }
    #expect(known.contains(Self.request.id) == hasEnded)
    worker.endLease(lease)
  }

  /// A delayed copy of the renewal would make a deleted record anew.
  @Test(arguments: [Release.remembered, .uncounted])
  func `a record of which a renewal was requested is kept`(kept: Release) throws {
    let harness = Self.harness()
    for isRenewed in [false, true] {
      let lease = LeaseKeeper(
        Self.request.granted, for: try harness.delivery(of: ""), isEnforced: true, uncountedRelease: kept,
        store: harness.store, context: harness.worker.context, metrics: harness.metrics)
      if isRenewed {
        lease.renewNow()
        harness.run()
      }
      #expect(lease.lastRelease(.deleted) == (isRenewed ? kept : .deleted))
      #expect(lease.lastRelease(.remembered) == .remembered && lease.lastRelease(.uncounted) == .uncounted)
      // It is renewed no more.
      lease.renewNow()
      harness.run()
      #expect(harness.store.renewals.count == (isRenewed ? 1 : 0))
    }
    Self.reply(.success(.done), harness)
  }

  @Test func `what a process that ends has renewed and not sent is kept`() throws {
    let harness = Self.harness()
    let lease = try Self.lease(harness)
    lease.renewNow()
    harness.run()
    #expect(lease.giveUpUnsent())
    guard case .release(.remembered)? = lease.lastCommand else {
      Issue.record("the record is to be deleted")
      return
    }
    Self.reply(.success(.done), harness)
  }

  @Test(arguments: [false, true])
  func `a process that ends marks what it has sent, and gives back and never sends the rest`(isSent: Bool)
    throws
  {
    let harness = Self.harness()
    let worker = harness.worker
    let route = Route(
      policy: RoutePolicy(
        name: "orders", match: RouteMatch(),
        upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none"))), index: 0)
    let lease = worker.keepLease(of: Self.request.granted, for: try harness.delivery(of: ""), by: route)
    #expect(!isSent || lease.permit.take(now: .now))
    worker.context.task { await worker.abandon() }
    harness.run()
    #expect(harness.store.markCount == (isSent ? 1 : 0))
    #expect(harness.store.releases == (isSent ? [] : [.deleted]))
    #expect(!lease.permit.take(now: .now))
  }
}
