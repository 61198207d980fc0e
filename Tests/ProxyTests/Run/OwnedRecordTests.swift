import Idempotency
import NIOCore
import Platform
import Testing
import Wire

@testable import Proxy

/// The leases of runs, and the ends of those that the store does not take at once.
struct OwnedRecordTests {
  /// A run whose outcome waits for the store's reply.
  private static func storing(_ harness: WorkerHarness) throws -> ScriptedClient {
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.store.holdsCompletions = true
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.response == nil && harness.store.heldCompletions.count == 1)
    return client
  }

  /// Has the store take the outcome, which ends the run.
  private static func store(_ client: ScriptedClient, _ harness: WorkerHarness) {
    harness.store.heldCompletions[0].resume(
      returning: .success(CompletionReply(outcome: .done, record: nil)))
    harness.run()
    #expect(client.status == 201 && harness.worker.isIdle)
  }

  /// Demands a renewal of all leases, and runs what follows from that.
  private static func renew(_ harness: WorkerHarness) {
    harness.worker.renewLeases()
    harness.run()
  }

  /// Has the store reply to the renewal under way, and runs what follows from that.
  private static func reply(_ result: Result<OwnerOutcome, StoreError>, _ harness: WorkerHarness) {
    harness.store.renewals.last?.resume(returning: result)
    harness.run()
  }

  /// Renewals are demanded because the store is another one than before, or has another time.
  @Test(arguments: [Result<OwnerOutcome, StoreError>.failure(.fateUnknown("cut")), .success(.done)])
  func `a renewal that is demanded while one is under way follows it at once`(
    _ first: Result<OwnerOutcome, StoreError>
  ) throws {
    let harness = WorkerHarness()
    let client = try Self.storing(harness)
    Self.renew(harness)
    #expect(harness.store.renewals.count == 1)
    harness.worker.renewLeases()
    Self.renew(harness)
    #expect(harness.store.renewals.count == 1)
    Self.reply(first, harness)
    try #require(harness.store.renewals.count == 2)
    // No timer fires here, so that a third one would have been demanded.
    Self.reply(.success(.done), harness)
    #expect(harness.store.renewals.count == 2)
    Self.store(client, harness)
  }

  @Test func `an owner that has lost its record does not renew again`() throws {
    let harness = WorkerHarness()
    let client = try Self.storing(harness)
    Self.renew(harness)
    harness.worker.renewLeases()
    Self.reply(.success(.lost(.released(attempt: 1))), harness)
    Self.renew(harness)
    #expect(harness.store.renewals.count == 1)
    Self.store(client, harness)
  }

  /// A lease that ran out before its timer fired: the owner stood still, or renewals fail.
  @Test func `a lapse is counted, also if the run ends before the next renewal`() async throws {
    let harness = WorkerHarness(Self.policy { $0.lease = 1 })
    harness.store.onClaim = {
      let claim = $0.granted
      while BootInstant.now < claim.requestedAt + 1 {}
      return .success(.granted(claim))
    }
    harness.backend.failures = [.notSent("refused")]
    #expect(try harness.deliver("{}", key: "k-1").status == 502)
    #expect(harness.store.releases == [.remembered])
    #expect(await harness.page().contains("semel_leases_lapsed_total 1\n"))
  }

  private static func policy(_ change: (inout RoutePolicy) -> Void) -> RoutePolicy {
    var policy = RoutePolicy(
      name: "orders", match: RouteMatch(),
      upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none")))
    policy.caller = CallerPolicy(parts: [])
    change(&policy)
    return policy
  }

  @Test(arguments: [false, true])
  func `a reload that opens a route makes its runs known, with the ends that they have`(hasEnded: Bool) throws
  {
    let harness = WorkerHarness()
    let known = harness.environment.known
    let client = try Self.storing(harness)
    let id = harness.store.claims[0].id
    if hasEnded {
      // The store did not take the outcome, which is sent again.
      harness.store.heldCompletions[0].resume(returning: .failure(ScriptedStore.away))
      harness.run()
      #expect(client.status == 201)
    }
    #expect(!known.contains(id))
    harness.worker.noteRuns()
    let isRunning = known.change(id) { record, _ in record?.isRunningHere }
    #expect(isRunning == !hasEnded)
    guard !hasEnded else { return }
    Self.store(client, harness)
    #expect(known.change(id) { record, _ in record?.isRunningHere } == false)
  }

  /// An owner whose request is not sent, or is.
  private static func owner(
    _ harness: WorkerHarness, isSent: Bool
  ) throws -> OwnedRecord<ScriptedStore, ScriptedBackend> {
    let delivery = try harness.delivery(of: "{}", key: "k-1")
    let runner = RequestRunner(worker: harness.worker, delivery: delivery)
    guard case .keyed(let call) = try runner.identify(body: delivery.wholeBody) else {
      throw ScriptedStore.away
    }
    let claim = runner.newClaimRequest(of: call, owner: harness.worker.newOwner()).granted
    let owned = harness.worker.own(claim, of: call, for: delivery)
    #expect(!isSent || owned.permit.take(now: .now))
    return owned
  }

  @Test(arguments: [false, true])
  func `a process that ends marks what it has sent, and gives back and never sends the rest`(isSent: Bool)
    throws
  {
    let harness = WorkerHarness()
    let owned = try Self.owner(harness, isSent: isSent)
    harness.worker.context.task { [worker = harness.worker] in await worker.abandon() }
    harness.run()
    #expect(harness.store.markCount == (isSent ? 1 : 0))
    #expect(harness.store.releases == (isSent ? [] : [.deleted]))
    #expect(!owned.permit.take(now: .now))
  }

  @Test func `what a process that ends has renewed and not sent is kept`() throws {
    let harness = WorkerHarness()
    let owned = try Self.owner(harness, isSent: false)
    Self.renew(harness)
    #expect(harness.store.renewals.count == 1)
    owned.cut()
    #expect(owned.run.end == .released(.remembered))
    Self.reply(.success(.done), harness)
  }

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
