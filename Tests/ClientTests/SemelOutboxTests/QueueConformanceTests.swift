import ClientTestSupport
import Foundation
import GRDB
import HTTPTypes
@testable import SemelClient
@testable import SemelOutbox
import Synchronization
import Testing

/// What every queue has to do, on every kind of database.
struct QueueConformanceTests {
  // Enqueuing

  @Test(arguments: QueueKind.allCases)
  func `an intent is leased with the request and the key that it was enqueued with`(kind: QueueKind) throws {
    let queue = try Queue(kind)
    let queued = try queue.enqueue("/v1/orders?x=1", body: #"{"a":1}"#)
    let leased = try #require(try queue.lease().first)
    #expect(leased.name == queued && leased.intent.key == queued.key)
    #expect(leased.intent.request.path == "/v1/orders?x=1")
    #expect(leased.intent.request.body == .bytes([UInt8](#"{"a":1}"#.utf8)))
  }

  @Test(arguments: QueueKind.allCases)
  func `an intent is enqueued with the application's change, or not at all`(kind: QueueKind) throws {
    struct Failed: Error {}
    let queue = try Queue(kind)
    #expect(throws: Failed.self) {
      try queue.database.write { db in
        _ = try queue.store().enqueue(.delete("/v1/orders/1"), .init(), in: db)
        throw Failed()
      }
    }
    #expect(try queue.statistics() == QueueStatistics())
    #expect(try queue.lease().isEmpty)
  }

  @Test(arguments: QueueKind.allCases)
  func `a second tap gets the first tap's intent, also after it has ended`(kind: QueueKind) throws {
    let queue = try Queue(kind)
    let first = try queue.enqueue(once: "submit-cart-17")
    #expect(try queue.enqueue(once: "submit-cart-17") == first)
    try queue.end(try #require(try queue.lease().first))
    #expect(try queue.enqueue(once: "submit-cart-17") == first)
    #expect(try queue.lease().isEmpty)
    #expect(try queue.enqueue(once: "submit-cart-18") != first)
  }

  @Test(arguments: QueueKind.allCases)
  func `another request under the name of a tap is refused`(kind: QueueKind) throws {
    let queue = try Queue(kind)
    let first = try queue.enqueue(once: "submit", body: "1")
    #expect(throws: OutboxError.onceMismatch(first)) { try queue.enqueue(once: "submit", body: "2") }
  }

  @Test func `a body above the limit is refused`() throws {
    let queue = try Queue()
    let body = String(repeating: "x", count: (1 << 20) + 1)
    #expect(throws: OutboxError.bodyTooLarge((1 << 20) + 1)) { try queue.enqueue(body: body) }
  }

  @Test func `a full queue takes no intent until one has ended`() throws {
    let queue = try Queue()
    var limits = QueueLimits()
    limits.maxOpen = 2
    let store = queue.store(limits: limits)
    let enqueue = { try queue.database.write { db in _ = try store.enqueue(.delete("/"), .init(), in: db) } }
    try enqueue()
    try enqueue()
    #expect(throws: OutboxError.queueFull) { try enqueue() }
    try queue.end(try #require(try queue.lease(1).first))
    try enqueue()
  }

  @Test func `a credential is not stored`() throws {
    let queue = try Queue()
    let request = IntentRequest(method: .post, path: "/", fields: [.cookie: "session=1"])
    #expect(throws: OutboxError.credentialInRequest("Cookie")) {
      try queue.database.write { db in _ = try queue.store().enqueue(request, .init(), in: db) }
    }
  }

  // Leases

  @Test(arguments: QueueKind.allCases)
  func `an intent is leased by one process at a time`(kind: QueueKind) throws {
    let queue = try Queue(kind)
    try queue.enqueue()
    #expect(try queue.lease(as: "app").count == 1)
    #expect(try queue.lease(as: "extension").isEmpty)
    #expect(try queue.lease(as: "app").isEmpty)
  }

  @Test(arguments: QueueKind.allCases)
  func `a lease that lapsed is taken over, and counts as a delivery that may have run`(kind: QueueKind) throws
  {
    let queue = try Queue(kind)
    try queue.enqueue()
    let first = try #require(try queue.lease(as: "app").first)
    queue.clock.advance(by: .seconds(29))
    #expect(try queue.lease(as: "extension").isEmpty)
    queue.clock.advance(by: .seconds(1))
    let second = try #require(try queue.lease(as: "extension").first)
    #expect(second.lifecycle.progress.mayHaveRun && !first.lifecycle.progress.mayHaveRun)
    #expect(second.intent == first.intent)
    #expect(second.sinceLastDelivery == .seconds(30))
    #expect(try !queue.end(first))
    #expect(try queue.end(second))
  }

  @Test func `a lease that is renewed does not lapse`() throws {
    let queue = try Queue()
    try queue.enqueue()
    let leased = try #require(try queue.lease(as: "app").first)
    for _ in 0..<10 {
      queue.clock.advance(by: .seconds(20))
      #expect(try queue.database.write { db in try queue.store().renew(leased, in: db) })
      #expect(try queue.lease(as: "extension").isEmpty)
    }
  }

  @Test func `a lease that another process has taken cannot be renewed`() throws {
    let queue = try Queue()
    try queue.enqueue()
    let leased = try #require(try queue.lease(as: "app").first)
    queue.clock.advance(by: .seconds(31))
    _ = try queue.lease(as: "extension")
    #expect(try !queue.database.write { db in try queue.store().renew(leased, in: db) })
  }

  @Test func `the leases of another boot have lapsed`() throws {
    let queue = try Queue()
    try queue.enqueue()
    _ = try queue.lease()
    queue.boot.withLock { $0 = "boot-2" }
    #expect(try queue.lease().count == 1)
  }

  // Time

  @Test(arguments: QueueKind.allCases)
  func `a postponed intent is leased at its time, with what is known of it`(kind: QueueKind) throws {
    let queue = try Queue(kind)
    try queue.enqueue()
    var leased = try #require(try queue.lease().first)
    let action = leased.lifecycle.delivered(
      Verdict(.lost("")), start: leased.start, now: queue.environment.now(), random: 0, grantsRetry: { true })
    #expect(action == .wait(.zero))
    try queue.database.write { [leased] db in try queue.store().postpone(leased, by: .seconds(60), in: db) }
    queue.clock.advance(by: .seconds(59))
    #expect(try queue.lease().isEmpty)
    queue.clock.advance(by: .seconds(1))
    let again = try #require(try queue.lease().first)
    #expect(again.lifecycle.progress.attempts == 1 && again.lifecycle.progress.mayHaveRun)
    #expect(again.lifecycle.progress.deliveries == 2)
  }

  @Test func `an intent that was postponed by a clock that was ahead is sent when the clock is set back`()
    throws
  {
    let queue = try Queue()
    try queue.enqueue()
    let ahead = 10 * 86_400_000
    try queue.database.write { db in
      try db.execute(sql: "UPDATE semel_intent SET due_at = due_at + ?", arguments: [ahead])
    }
    #expect(try queue.lease().count == 1)
  }

  @Test(arguments: QueueKind.allCases)
  func `an intent that was never sent expires after seven days`(kind: QueueKind) throws {
    let queue = try Queue(kind)
    let queued = try queue.enqueue()
    queue.clock.advance(by: .seconds(7 * 86_400))
    #expect(try queue.lease().isEmpty)
    #expect(try queue.outcome(queued) == .expired)
  }

  @Test func `an intent that may have run becomes unknown when the server may have forgotten its key`() throws
  {
    let queue = try Queue()
    let queued = try queue.enqueue()
    _ = try queue.lease()
    queue.clock.advance(by: .seconds(86_401))
    #expect(try queue.lease().isEmpty)
    #expect(try queue.outcome(queued) == .unknown(nil))
  }

  // Ends

  @Test(arguments: QueueKind.allCases)
  func `each outcome is read as it was written`(kind: QueueKind) throws {
    let queue = try Queue(kind)
    let outcomes: [QueuedOutcome] = [
      .completed(Response(201, ["Location": "/1"], #"{"id":1}"#), wasReplayed: true),
      .completed(Response(204), wasReplayed: false), .rejected(Response(422, [:], "no")), .unknown(nil),
      .unknown(Problem(code: "outcome_unknown", detail: "d", isRetryable: false)), .expired,
      .cancelled(.replaced(7)),
    ]
    for outcome in outcomes {
      let queued = try queue.enqueue()
      #expect(try queue.outcome(queued) == nil)
      try queue.end(try #require(try queue.lease().first), outcome)
      #expect(try queue.outcome(queued) == outcome)
      #expect(queue.ended[queued.id] == outcome)
    }
    #expect(queue.endCount == outcomes.count)
  }

  @Test(arguments: QueueKind.allCases)
  func `an intent has one end`(kind: QueueKind) throws {
    let queue = try Queue(kind)
    let queued = try queue.enqueue()
    let leased = try #require(try queue.lease().first)
    #expect(try queue.end(leased, .rejected(Response(422))))
    #expect(try !queue.end(leased, .completed(Response(200), wasReplayed: false)))
    #expect(try queue.outcome(queued) == .rejected(Response(422)))
    #expect(queue.endCount == 1)
  }

  @Test func `what ended long ago is purged, and the name of its tap is free again`() throws {
    let queue = try Queue()
    let first = try queue.enqueue(once: "submit")
    try queue.end(try #require(try queue.lease().first))
    let open = try queue.enqueue()
    let purge = { (time: Date) in
      try queue.database.write { db in try queue.store().purge(endedBefore: time, in: db) }
    }
    #expect(try purge(queue.environment.now()) == 0)
    queue.clock.advance(by: .seconds(10))
    #expect(try purge(queue.environment.now()) == 1)
    #expect(try queue.enqueue(once: "submit") != first)
    #expect(try queue.outcome(open) == nil)
  }

  @Test func `limits without an end are limits all the same`() throws {
    let queue = try Queue()
    var policy = Policy.standard
    policy.queue.backoff.max = .seconds(Int64.max)
    policy.maxRetryAfter = .seconds(Int64.max)
    let queued = try queue.enqueue()
    try queue.database.write { [policy] db in
      let leased = try queue.store(policy: policy).lease(limit: 10, in: db).leased
      #expect(leased.map(\.name) == [queued])
      #expect(try queue.store().purge(endedBefore: Date(timeIntervalSince1970: -1e300), in: db) == 0)
    }
  }

  @Test func `a queue that an earlier process made is found as it is`() throws {
    let queue = try Queue(.file)
    let queued = try queue.enqueue()
    try queue.database.write { db in try QueueSchema.migrate(db) }
    #expect(try queue.lease().map(\.name) == [queued])
  }

  @Test func `statistics count what is open, and its age`() throws {
    let queue = try Queue()
    try queue.enqueue(group: "g")
    queue.clock.advance(by: .seconds(5))
    try queue.enqueue(group: "g")
    try queue.enqueue()
    _ = try queue.lease(1)
    let statistics = try queue.statistics()
    #expect(statistics.blocked == 1 && statistics.ready == 1 && statistics.sending == 1)
    #expect(statistics.oldestOpen == .seconds(5))
  }
}
