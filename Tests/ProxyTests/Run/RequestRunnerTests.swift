import Idempotency
import NIOCore
import Platform
import Testing
import Wire

@testable import Proxy

/// Single deliveries on a store and a backend that the tests script.
struct RequestRunnerTests {
  @Test(arguments: ["k-1", nil])
  func `a request that comes while the process ends is refused before it is claimed or sent`(
    key: String?
  ) throws {
    let harness = WorkerHarness()
    harness.environment.drain()
    let client = try harness.deliver("{}", key: key)
    #expect(client.status == 503 && client.text.contains(#""code":"overloaded""#))
    #expect(client.fields.contains("Retry-After: 1\r\n"))
    #expect(harness.store.claims.isEmpty && harness.backend.requests.isEmpty)
  }

  @Test func `a claim that is granted after a process has ended its runs is given back`() throws {
    let harness = WorkerHarness()
    let worker = harness.worker
    worker.context.task { await worker.abandon() }
    harness.run()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.status == 503 && client.text.contains(#""code":"overloaded""#))
    #expect(harness.store.releases == [.deleted])
    #expect(harness.backend.requests.isEmpty && worker.isIdle)
  }

  @Test func `a response that the store could not take in time is announced as not kept`() async throws {
    let harness = WorkerHarness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.store.onComplete = { claim, completion in
      .success(
        CompletionReply(
          outcome: .done,
          record: CompletedRecord(
            outcome: completion.outcome.withoutResponse, recordedAt: StoreInstant(milliseconds: 1000),
            expiresAt: StoreInstant(milliseconds: 9000), remaining: 8000, attempt: claim.attempt)))
    }
    harness.backend.body = "made"
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.text == "made")
    #expect(client.fields.contains("Idempotency-Status: executed; kept=no\r\n"))
    let page = await harness.page()
    #expect(page.contains(#"semel_responses_not_kept_total{route="orders",why="too_slow"} 1"#))
  }

  /// (The memory that is left for outcomes, in bytes: enough for one without its response, or for none.)
  @Test(arguments: [16 << 10, 0])
  func `a response that waits for the store without its body is announced as not kept`(left: Int) async throws
  {
    let harness = WorkerHarness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.store.onComplete = { _, _ in .failure(ScriptedStore.away) }
    harness.backend.body = String(repeating: "x", count: 20 << 10)
    while harness.worker.takeMemory(1024) {}
    harness.worker.giveMemory(left)
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.status == 201 && client.text == harness.backend.body)
    #expect(client.fields.contains("Idempotency-Status: executed; kept=no\r\n"), "\(client.fields)")
    #expect(harness.worker.isIdle == (left == 0))
    let page = await harness.page()
    #expect(page.contains(#"semel_responses_not_kept_total{route="orders",why="no_memory"} 1"#))
  }

  /// The failures of a run whose response was lost or is late.
  private static let losses: [[UpstreamFailure]] = [
    [.responseLost("cut")], [.timedOut, .responseLost("cut")],
  ]

  @Test(arguments: losses)
  func `an owner that lost its response and its record replays the other owner's outcome`(
    failures: [UpstreamFailure]
  ) throws {
    let harness = WorkerHarness()
    let response = RecordedResponse(status: 202, fields: ByteBuffer(), body: ByteBuffer(string: "other"))
    harness.backend.failures = failures
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.store.markOutcome = .lost(
      .completed(
        CompletedRecord(
          outcome: .whole(response), recordedAt: StoreInstant(milliseconds: 0),
          expiresAt: StoreInstant(milliseconds: 9000), remaining: 9000, attempt: 2)))
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.status == 202 && client.text.hasSuffix("other"), "\(client.text)")
    #expect(harness.store.markCount == 1 && harness.backend.requests.count == 1)
    #expect(harness.worker.isIdle)
  }

  @Test(arguments: losses)
  func `an owner that lost its response and its record does not claim again`(
    failures: [UpstreamFailure]
  ) throws {
    let harness = WorkerHarness()
    let store = harness.store
    harness.backend.failures = failures
    store.onClaim = { .success(.granted($0.granted)) }
    store.markOutcome = .lost(.released(attempt: 2))
    let client = try harness.deliver("{}", key: "k-1")
    // At the time-out a late response is awaited, whoever has the record.
    #expect(client.status == (failures.count == 1 ? 409 : 504))
    #expect(client.text.contains(#""code":"outcome_unknown""#), "\(client.text)")
    #expect(store.claims.count == 1 && store.markCount == 1 && harness.backend.requests.count == 1)
    #expect(store.releases.isEmpty && harness.worker.isIdle)
  }

  /// A route whose retries follow at once.
  private static var retrying: RoutePolicy {
    var policy = RoutePolicy(
      name: "orders", match: RouteMatch(),
      upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none")))
    policy.caller = CallerPolicy(parts: [])
    policy.retries = RetryPolicy()
    policy.retries?.backoff = 0
    policy.waitTimeout = 300
    return policy
  }

  @Test func `a client whose retry finds no store is told so, and not of the last response`() throws {
    let harness = WorkerHarness(Self.retrying)
    let store = harness.store
    harness.backend.status = 503
    store.onClaim = {
      store.claims.count == 1 ? .success(.granted($0.granted)) : .failure(ScriptedStore.away)
    }
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.status == 503 && client.text.contains(#""code":"store_unavailable""#), "\(client.text)")
    #expect(store.claims.count == 2 && harness.backend.requests.count == 1)
  }

  /// Between the two attempts another delivery gets the record, and keeps it for too long.
  @Test func `no retry begins later than wait_timeout after the first attempt`() throws {
    let policy = Self.retrying
    let harness = WorkerHarness(policy)
    let store = harness.store
    harness.backend.status = 503
    store.onClaim = { request in
      switch store.claims.count {
      case 1: return .success(.granted(request.granted))
      case 2:
        let limit = BootInstant.now + policy.waitTimeout
        while BootInstant.now < limit {}
        return .success(.taken(.inFlight(leaseLeft: .seconds(60), attempt: 2)))
      default: return .success(.granted(request.granted(over: nil, attempt: 3)))
      }
    }
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.status == 409 && client.text.contains(#""code":"in_flight""#), "\(client.text)")
    #expect(store.claims.count == 2 && store.watchCount == 0)
    #expect(harness.backend.requests.count == 1 && store.releases.count == 1)
  }

  @Test func `a new duplicate is refused while the store takes no subscription`() throws {
    let harness = WorkerHarness()
    let store = harness.store
    store.onClaim = { _ in .success(.taken(.inFlight(leaseLeft: .seconds(60), attempt: 1))) }
    store.onWatch = { .unavailable("no right to subscribe") }
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.status == 503 && client.text.contains(#""code":"store_unavailable""#), "\(client.text)")
    #expect(client.fields.contains("Retry-After: "))
    #expect(store.watchCount == 1 && store.waits.isEmpty && harness.backend.requests.isEmpty)
  }

  /// Whatever the subscription tells, and whether or not it still stands.
  @Test func `a duplicate that waits looks again when the first delivery's lease ends`() throws {
    let harness = WorkerHarness()
    let store = harness.store
    store.onClaim = { request in
      // The second claim finds an end that came before the subscription.
      guard store.claims.count > 2 else {
        return .success(.taken(.inFlight(leaseLeft: 700, attempt: 1)))
      }
      return .success(.granted(request.granted(over: nil, attempt: 2)))
    }
    let client = try harness.deliver("{}", key: "k-1")
    // A moment past the lease's end, and far less than `wait_timeout`.
    #expect(store.waits.count == 1 && store.waits.allSatisfy { (700...900).contains($0.count) })
    #expect(client.status == 201 && store.claims.count == 3 && harness.backend.requests.count == 1)
  }

  @Test func `an overtaken owner that cannot wait does not call its request unexecuted`() throws {
    let harness = WorkerHarness()
    let store = harness.store
    let inFlight = Standing.inFlight(leaseLeft: .seconds(60), attempt: 2)
    store.onClaim = { .success(.granted($0.granted)) }
    store.onComplete = { _, _ in .success(CompletionReply(outcome: .lost(inFlight), record: nil)) }
    let client = try harness.deliver("{}", key: "k-1")
    #expect(client.text.contains(#""code":"outcome_unknown""#), "\(client.text)")
    #expect(harness.backend.requests.count == 1 && store.releases.isEmpty && store.watchCount == 0)
  }
}
