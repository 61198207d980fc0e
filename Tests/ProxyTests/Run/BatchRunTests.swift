import Foundation
import Idempotency
import NIOCore
import Platform
import Synchronization
import Telemetry
import Testing
import Wire

@testable import Proxy

/// Batches on a store and a backend that the tests script.
struct BatchRunTests {
  private static func harness(cors: CORSPolicy? = nil) -> WorkerHarness {
    var policy = RoutePolicy(
      name: "orders", match: RouteMatch(),
      upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none")))
    let batch = BatchPolicy(items: "/orders", key: "/id", results: "/results")
    policy.batch = batch
    policy.key.from = [batch.keySource]
    policy.caller = CallerPolicy(parts: [])
    policy.cors = cors
    return WorkerHarness(policy)
  }

  /// A harness whose backend's response is lost, and whose store holds each mark.
  private static func losingHarness() -> WorkerHarness {
    let harness = harness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.store.holdsMarks = true
    harness.backend.failures = [.responseLost("cut")]
    return harness
  }

  /// A batch of so many items.
  private static func body(_ count: Int) -> String {
    #"{"orders":[\#((0..<count).map { #"{"id":"k\#($0)"}"# }.joined(separator: ","))]}"#
  }

  private static func record(_ body: String, fields: String = "", status: Int = 200) -> CompletedRecord {
    CompletedRecord(
      outcome: .whole(
        RecordedResponse(
          status: status, fields: ByteBuffer(string: fields), body: ByteBuffer(string: body))),
      recordedAt: StoreInstant(milliseconds: 1000), expiresAt: StoreInstant(milliseconds: 9000),
      remaining: 8000, attempt: 1)
  }

  private static let held = ClaimReply.success(.taken(.inFlight(leaseLeft: .seconds(60), attempt: 1)))

  @Test func `a store that is away is waited for once, however many items there are`() throws {
    let harness = Self.harness()
    let client = try harness.deliver(Self.body(60))
    #expect(client.status == 503 && client.text.contains(#""code":"store_unavailable""#))
    // As many as are under way at once.
    #expect(harness.store.claims.count == 32)
    #expect(harness.backend.requests.isEmpty)
  }

  @Test func `a batch that waits for nothing leaves others their turns`() throws {
    let harness = Self.harness()
    let worker = harness.worker
    let lookups = Atomic(0)
    let lookupsBefore = Atomic(0)
    harness.store.onLookup = {
      if lookups.add(1, ordering: .relaxed).newValue == 1 {
        worker.context.task { lookupsBefore.store(lookups.load(ordering: .relaxed), ordering: .relaxed) }
      }
      return .taken(.completed(Self.record("7")))
    }
    let client = try harness.deliver(Self.body(60))
    #expect(client.fields.contains("Idempotency-Status: batch; executed=0; replayed=60; refused=0\r\n"))
    #expect(lookupsBefore.load(ordering: .relaxed) == 32)
  }

  @Test func `a store that is away for a part of the items refuses those alone`() throws {
    let harness = Self.harness()
    harness.backend.body = #"{"results":[1]}"#
    let store = harness.store
    var count = 0
    store.onClaim = { request in
      count += 1
      return count == 1 ? .success(.granted(request.granted)) : .failure(.unavailable("away"))
    }
    let client = try harness.deliver(Self.body(40))
    #expect(client.status == 207)
    #expect(client.fields.contains("Idempotency-Status: batch; executed=1; replayed=0; refused=39\r\n"))
    // Its first part had a reply, so that the second one was tried.
    #expect(store.claims.count == 40)
  }

  @Test func `items that are claimed after a process has ended its runs are given back`() throws {
    let harness = Self.harness()
    let worker = harness.worker
    worker.context.task { await worker.abandon() }
    harness.run()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    let client = try harness.deliver(Self.body(3))
    #expect(client.status == 503)
    #expect(harness.store.releases == [.deleted, .deleted, .deleted])
    #expect(harness.backend.requests.isEmpty && worker.isIdle)
  }

  @Test func `a store that cannot be subscribed to is waited for once`() throws {
    let harness = Self.harness()
    harness.store.onClaim = { _ in Self.held }
    harness.store.onWatch = { .unavailable("away") }
    let client = try harness.deliver(Self.body(5))
    #expect(client.status == 503 && client.text.contains(#""code":"store_unavailable""#))
    #expect(harness.store.watchCount == 1)
  }

  @Test func `items whose response was lost are marked at once`() throws {
    let harness = Self.losingHarness()
    let store = harness.store
    let client = try harness.deliver(Self.body(5))
    // All of them wait together for a store that is away.
    #expect(store.marks.count == 5 && client.response == nil)
    for mark in store.marks { mark.resume(returning: .failure(.unavailable("away"))) }
    harness.run()
    #expect(client.status == 502 && client.text.contains(#""code":"outcome_unknown""#))
    #expect(harness.worker.isIdle)
  }

  @Test func `the marks of a large batch do not stand before others' commands all at once`() throws {
    let harness = Self.losingHarness()
    let store = harness.store
    let client = try harness.deliver(Self.body(50))
    #expect(store.marks.count == 32)
    // Each reply makes room for one.
    for count in 0..<50 {
      try #require(store.marks.count == min(50, 32 + count))
      store.marks[count].resume(returning: .success(.done))
      harness.run()
    }
    #expect(client.status == 502 && harness.worker.isIdle)
  }

  @Test func `the outcomes of a large batch are recorded some at once`() throws {
    let harness = Self.harness()
    let store = harness.store
    store.onClaim = { .success(.granted($0.granted)) }
    store.holdsCompletions = true
    harness.backend.body = #"{"results":[\#((0..<40).map(String.init).joined(separator: ","))]}"#
    let client = try harness.deliver(Self.body(40))
    for count in 0..<40 {
      try #require(store.heldCompletions.count == min(40, 32 + count))
      store.heldCompletions[count].resume(
        returning: .success(CompletionReply(outcome: .done, record: Self.record("\(count)"))))
      harness.run()
    }
    #expect(client.fields.contains("Idempotency-Status: batch; executed=40; replayed=0; refused=0\r\n"))
    #expect(harness.worker.isIdle)
  }

  @Test func `items that are lost while the store is away wait for it together`() throws {
    let harness = Self.losingHarness()
    let store = harness.store
    let client = try harness.deliver(Self.body(50))
    try #require(store.marks.count == 32)
    store.marks[0].resume(returning: .failure(.unavailable("away")))
    harness.run()
    #expect(store.marks.count == 50)
    for mark in store.marks.dropFirst() { mark.resume(returning: .failure(.unavailable("away"))) }
    harness.run()
    #expect(client.status == 502 && harness.worker.isIdle)
  }

  @Test func `an item that another owner has taken over gets what the record says`() throws {
    let inFlight = Standing.inFlight(leaseLeft: .seconds(60), attempt: 2)
    for standing in [.completed(Self.record("7")), inFlight, .released(attempt: 2)] as [Standing] {
      let harness = Self.harness()
      let store = harness.store
      store.onClaim = { .success(.granted($0.granted)) }
      store.onComplete = { _, _ in .success(CompletionReply(outcome: .lost(standing), record: nil)) }
      harness.backend.body = #"{"results":[1]}"#
      let client = try harness.deliver(Self.body(1))
      if case .completed = standing {
        #expect(client.text == #"{"results":[7]}"#)
        #expect(client.fields.contains("Idempotency-Status: batch; executed=0; replayed=1; refused=0\r\n"))
      } else {
        #expect(client.status == 409 && client.text.contains(#""code":"outcome_unknown""#))
      }
      #expect(store.claims.count == 1 && store.completions.count == 1 && store.releases.isEmpty)
      #expect(harness.backend.requests.count == 1 && harness.worker.isIdle)
    }
  }

  @Test func `results count as memory while their batch waits for other owners`() throws {
    let harness = Self.harness()
    let store = harness.store
    var count = 0
    store.onClaim = { request in
      count += 1
      switch count {
      case 1: return .success(.granted(request.granted))
      case 2: return Self.held
      default: return .success(.taken(.completed(Self.record("7"))))
      }
    }
    var bytes = 0
    store.onWatch = {
      bytes = harness.environment.counters[.bodyBytes]
      return nil
    }
    harness.backend.body = #"{"results":["\#(String(repeating: "x", count: 5000))"]}"#
    let client = try harness.deliver(Self.body(2))
    #expect(client.fields.contains("Idempotency-Status: batch; executed=1; replayed=1; refused=0\r\n"))
    #expect(bytes >= 5000)
  }

  @Test(arguments: ["", "by hand", "1,2"])
  func `an item that was resolved by hand while it ran does not break the response`(text: String) throws {
    let harness = Self.harness()
    let store = harness.store
    store.onClaim = { .success(.granted($0.granted)) }
    store.onComplete = { _, _ in
      let outcome: OwnerOutcome =
        store.completions.count == 1 ? .lost(.completed(Self.record(text))) : .done
      return .success(CompletionReply(outcome: outcome, record: nil))
    }
    harness.backend.body = #"{"results":[1,2]}"#
    let client = try harness.deliver(Self.body(2))
    #expect(client.status == 207)
    #expect(client.fields.contains("Idempotency-Status: batch; executed=1; replayed=0; refused=1\r\n"))
    let document = try JSONSerialization.jsonObject(with: Data(client.text.utf8)) as? [String: Any]
    let results = try #require(document?["results"] as? [Any])
    #expect(results.count { $0 is Int } == 1)
    let codes = results.compactMap { ($0 as? [String: Any])?["code"] as? String }
    #expect(codes == ["response_not_kept"])
  }

  @Test func `a batch that has waited gets what others have recorded without room for a response`() throws {
    let harness = Self.harness()
    let store = harness.store
    store.onClaim = { _ in
      store.claims.count == 1 ? Self.held : .success(.taken(.completed(Self.record("7"))))
    }
    store.onWatch = {
      harness.exhaustCaptures()
      return nil
    }
    let client = try harness.deliver(Self.body(1))
    #expect(client.status == 200 && client.text == #"{"results":[7]}"#)
  }

  @Test func `a batch that has waited, and finds no room for a response, gives its claims back`() throws {
    let harness = Self.harness()
    let store = harness.store
    store.onClaim = { store.claims.count == 1 ? Self.held : .success(.granted($0.granted)) }
    store.onWatch = {
      harness.exhaustCaptures()
      return nil
    }
    let client = try harness.deliver(Self.body(1))
    #expect(client.status == 503 && client.text.contains(#""code":"overloaded""#))
    #expect(store.releases.count == 1 && harness.worker.unusedClaims.isEmpty)
    #expect(harness.backend.requests.isEmpty)
  }

  @Test(arguments: [(503, 2, 0), (422, 0, 2), (504, 0, 0)])
  func `a late response without results ends the records as one in time`(
    status: Int, releases: Int, completions: Int
  ) throws {
    let harness = Self.harness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.backend.failures = [.timedOut]
    harness.backend.status = status
    let client = try harness.deliver(Self.body(2))
    #expect(client.status == 504 && client.text.contains(#""code":"outcome_unknown""#))
    #expect(harness.store.releases == Array(repeating: .remembered, count: releases))
    #expect(harness.store.completions.map(\.outcome.status) == Array(repeating: status, count: completions))
    // At the time-out, and once more by a response of class unknown.
    #expect(harness.store.markCount == (status == 504 ? 4 : 2))
    #expect(harness.worker.isIdle)
  }

  @Test(arguments: [200, 201])
  func `a late success without certain results leaves the items unknown`(status: Int) throws {
    let harness = Self.harness()
    harness.store.onClaim = { .success(.granted($0.granted)) }
    harness.backend.failures = [.timedOut]
    harness.backend.status = status
    harness.backend.body = #"{"results":[1]}"#
    #expect(try harness.deliver(Self.body(2)).status == 504)
    #expect(harness.store.completions.isEmpty && harness.store.releases.isEmpty)
    #expect(harness.store.markCount == 2)
    #expect(harness.worker.isIdle)
  }

  @Test(arguments: [("https://shop.example", true), ("https://app.example", false)])
  func `pages read results only where the backend allows it for each`(origin: String, isOne: Bool) throws {
    let harness = Self.harness(cors: CORSPolicy())
    let fields = ["https://shop.example", origin].map { "Access-Control-Allow-Origin: \($0)\r\n" }
    let store = harness.store
    var records = fields.map { Self.record("1", fields: $0) }
    store.onClaim = { _ in .success(.taken(.completed(records.removeFirst()))) }
    let client = try harness.deliver(Self.body(2))
    #expect(client.status == 200 && client.text == #"{"results":[1,1]}"#)
    #expect(client.fields.contains("Access-Control-Allow-Origin: https://shop.example\r\n") == isOne)
    #expect(client.fields.contains("Vary: Origin\r\n") == isOne)
    #expect(client.fields.contains("Access-Control-Expose-Headers: ") == isOne)
  }

  @Test func `an inquiry for an item without the store says nothing of the item`() throws {
    let target = "/.well-known/idempotency/outcome?method=POST&path=/v1/orders&key=k0"
    let client = try Self.harness().deliver("", method: "GET", target: target)
    #expect(client.status == 503 && client.text.contains(#""code":"store_unavailable""#))
    #expect(!client.text.contains("not executed"), "\(client.text)")
  }
}
