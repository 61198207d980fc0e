import Idempotency
import NIOCore
import Platform
import Testing
import Wire

@testable import Proxy

/// Deliveries that are granted a record whose outcome this process has, while the store does not.
struct UnstoredOutcomesTests {
  private static let away = StoreError.unavailable("away")
  private static let inFlight = Standing.inFlight(leaseLeft: .seconds(60), attempt: 2)

  /// Replies to a completion as a store that takes it.
  private static func take(_ claim: Claim, _ completion: Completion) -> Result<CompletionReply, StoreError> {
    let record = CompletedRecord(
      outcome: completion.outcome, recordedAt: StoreInstant(milliseconds: 1000),
      expiresAt: StoreInstant(milliseconds: 9000), remaining: 8000, attempt: claim.attempt)
    return .success(CompletionReply(outcome: .done, record: record))
  }

  /// Has a run end while the store takes no outcome; its client has the response.
  private static func endUnstored(_ harness: WorkerHarness) throws {
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.store.onComplete = { _, _ in .failure(away) }
    harness.backend.body = "first"
    #expect(try harness.deliver("{}", key: "k").status == 201)
    harness.store.onComplete = take
    harness.backend.body = "second"
  }

  private static func expectAdopted(
    _ client: ScriptedClient, _ harness: WorkerHarness, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(client.status == 201 && client.text == "first", sourceLocation: sourceLocation)
    #expect(client.fields.contains("Idempotency-Status: replayed\r\n"), sourceLocation: sourceLocation)
    #expect(harness.backend.requests.count == 1, sourceLocation: sourceLocation)
  }

  /// Another node took the record over; the store has lost it.
  @Test(arguments: [(2, true), (3, false), (1, false), (1_000_000_001, false)])
  func `a granted claim gets the outcome that the store has not taken`(attempt: Int, followsUnknown: Bool)
    throws
  {
    let harness = WorkerHarness()
    try Self.endUnstored(harness)
    harness.store.onClaim = {
      .success(.granted($0.granted(over: nil, attempt: attempt, followsUnknown: followsUnknown)))
    }
    Self.expectAdopted(try harness.deliver("{}", key: "k"), harness)
    #expect(harness.store.completions.count == 2 && harness.store.releases.isEmpty)
  }

  @Test func `an operator's release, a forget and another payload count more`() throws {
    let fence = Fence(until: StoreInstant(milliseconds: 9), left: 5)
    let grants: [(body: String, grant: (ClaimRequest) -> Claim)] = [
      ("{}", { $0.granted(over: nil, attempt: 2) }), ("{}", { $0.granted(over: fence) }),
      (#"{"amount":2}"#, { $0.granted }),
    ]
    for (body, grant) in grants {
      let harness = WorkerHarness()
      try Self.endUnstored(harness)
      harness.store.onClaim = { .success(.granted(grant($0))) }
      #expect(try harness.deliver(body, key: "k").text == "second")
      #expect(harness.backend.requests.count == 2)
    }
  }

  /// The backend responds after its time-out, and the store replies to another claim before the completion.
  @Test func `a granted claim gets an outcome that is on its way to the store`() throws {
    let harness = WorkerHarness()
    let store = harness.store
    store.onClaim = { .success(.granted($0.granted)) }
    store.holdsCompletions = true
    harness.backend.failures = [.timedOut]
    harness.backend.body = "first"
    let late = try harness.deliver("{}", key: "k")
    #expect(late.text.contains(#""code":"outcome_unknown""#) && store.heldCompletions.count == 1)
    store.holdsCompletions = false
    store.onComplete = Self.take
    store.onClaim = { .success(.granted($0.granted(over: nil, attempt: 2, followsUnknown: true))) }
    Self.expectAdopted(try harness.deliver("{}", key: "k"), harness)
    // The first one is stored nowhere: the record is another's by now.
    store.onClaim = { _ in .success(.taken(.expired(attempt: 2))) }
    store.heldCompletions[0].resume(
      returning: .success(CompletionReply(outcome: .lost(Self.inFlight), record: nil)))
    harness.run()
    #expect(harness.worker.isIdle && harness.environment.unstored.isEmpty)
  }

  @Test func `a granted claim gets the outcome that another owner kept from its record`() throws {
    let harness = WorkerHarness()
    let store = harness.store
    store.onClaim = { store.claims.count == 1 ? .success(.granted($0.granted)) : .failure(Self.away) }
    store.onComplete = { _, _ in .success(CompletionReply(outcome: .lost(Self.inFlight), record: nil)) }
    harness.backend.body = "first"
    #expect(try harness.deliver("{}", key: "k").status == 409)
    #expect(harness.worker.pendingOutcomes.count == 1)
    store.onComplete = Self.take
    store.onClaim = { .success(.granted($0.granted(over: nil, attempt: 3))) }
    Self.expectAdopted(try harness.deliver("{}", key: "k"), harness)
  }

  @Test func `an outcome is held until its holding is released`() {
    let outcomes = UnstoredOutcomes()
    let claim = ClaimRequest(
      id: RecordID(Digest256.sha256(of: Array("k".utf8))), owner: OwnerToken(high: 1, low: 2),
      fingerprint: Fingerprint(recipe: Recipe(), digest: Digest256.sha256(of: Array("body".utf8))),
      lease: .seconds(60), takeOver: .never, unknownRetention: .seconds(60), remember: .seconds(60)
    ).granted
    let statuses = [201, 202]
    var holdings: [UnstoredOutcomes.Holding] = statuses.map { status in
      let completion = Completion(
        outcome: .statusOnly(status: status, location: nil), retention: 1, remember: 1)
      return outcomes.hold(OvertakenOutcome(completion, of: claim), of: claim.id)
    }
    for status in statuses {
      #expect(outcomes.outcome(for: claim)?.completion.outcome.status == status)
      holdings.removeFirst()
    }
    #expect(outcomes.outcome(for: claim) == nil && holdings.isEmpty)
  }
}
