import ClientTestSupport
import Foundation
import GRDB
import HTTPTypes
import SemelClient
@testable import SemelOutbox
import Testing

/// Rows that cannot be read, changes that the application refuses, and bodies that another secret has sealed: none of
/// them stops the others.
struct QueueDamageTests {
  @Test
  func `sealed bodies are not readable in the file, and another queue's secret does not stop the others`()
    throws
  {
    let queue = try Queue(.sealed)
    try queue.enqueue(body: "secret-body")
    let stored = try queue.database.read { db in try Data.fetchOne(db, sql: "SELECT body FROM semel_intent") }
    #expect(stored?.range(of: Data("secret-body".utf8)) == nil)
    let plain = queue.store(isUnsealed: true)
    try queue.database.write { db in
      _ = try plain.enqueue(.delete("/plain"), .init(), in: db)
      let turn = try plain.lease(limit: 10, in: db)
      #expect(turn.leased.map(\.intent.request.path) == ["/plain"] && turn.failures.count == 1)
    }
    queue.clock.advance(by: .seconds(60))
    let bodies = try queue.lease().map(\.intent.request.body)
    #expect(bodies.contains(.bytes([UInt8]("secret-body".utf8))))
  }

  @Test(arguments: ["key = 'a b'", "method = ''", "fields = '{'"])
  func `a row that something else has damaged is reported, and does not stop the others`(damage: String)
    throws
  {
    let queue = try Queue()
    let damaged = try queue.enqueue()
    let whole = try queue.enqueue()
    try queue.database.write { db in
      try db.execute(sql: "UPDATE semel_intent SET \(damage) WHERE id = ?", arguments: [damaged.id])
      let turn = try queue.store().lease(limit: 10, in: db)
      #expect(turn.leased.map(\.name) == [whole])
      #expect(turn.failures.count == 1)
      #expect(turn.failures.allSatisfy { if case .unreadableIntent = $0 { true } else { false } })
    }
  }

  @Test func `an intent that lacks a value is reported, and is not sent without it`() throws {
    let queue = try Queue()
    let source = try queue.enqueue()
    let later = try queue.enqueue(values: [ResponseValue("id", of: source, at: "/id")], body: "{semel:id}")
    try queue.end(
      try #require(try queue.lease().first), .completed(Response(201, [:], #"{"id":7}"#), wasReplayed: false))
    try queue.database.write { db in
      try db.execute(sql: "UPDATE semel_value SET value = NULL WHERE intent = ?", arguments: [later.id])
      let turn = try queue.store().lease(limit: 10, in: db)
      #expect(turn.leased.isEmpty && turn.failures.count == 1)
    }
  }

  private func damageKey(of intent: QueuedIntent, in queue: Queue) throws {
    try queue.database.write { db in
      try db.execute(sql: "UPDATE semel_intent SET key = 'a ' || id WHERE id = ?", arguments: [intent.id])
    }
  }

  @Test(arguments: QueueKind.allCases)
  func `an intent ends although one that fails with it has lost its key`(kind: QueueKind) throws {
    let queue = try Queue(kind)
    let first = try queue.enqueue(group: "g", rule: .fail)
    let dependent = try queue.enqueue(values: [ResponseValue("id", of: first, at: "/id")])
    let second = try queue.enqueue(group: "g")
    let third = try queue.enqueue(group: "g")
    for intent in [dependent, second] { try damageKey(of: intent, in: queue) }
    let rejected = QueuedOutcome.rejected(Response(422))
    #expect(try queue.end(try #require(try queue.lease().first), rejected))
    #expect(queue.ended == [first.id: rejected, third.id: .cancelled(.groupFailed(first.id))])
    #expect(try queue.outcome(dependent) == .cancelled(.dependencyFailed(first.id)))
    #expect(try queue.outcome(second) == .cancelled(.groupFailed(first.id)))
    #expect(try queue.lease().isEmpty)
  }

  @Test func `an intent that has lost its key ends when its time is over, and its group goes on`() throws {
    let queue = try Queue()
    let damaged = try queue.enqueue(group: "g")
    queue.clock.advance(by: .seconds(1))
    let next = try queue.enqueue(group: "g")
    try damageKey(of: damaged, in: queue)
    #expect(try queue.lease().isEmpty)
    queue.clock.advance(by: .seconds(7 * 86_400 - 1))
    _ = try queue.lease()
    #expect(try queue.outcome(damaged) == .expired)
    #expect(try queue.lease().map(\.name) == [next])
  }

  @Test func `an intent that loses its key in a delivery ends with the head of its response`() throws {
    let queue = try Queue(.sealed)
    let intent = try queue.enqueue()
    let leased = try #require(try queue.lease().first)
    try damageKey(of: intent, in: queue)
    #expect(try queue.end(leased, .completed(Response(201, [:], "7"), wasReplayed: false)))
    #expect(try queue.outcome(intent) == .completed(Response(201), wasReplayed: false))
  }

  @Test func `an end that the application refuses is put off, and does not stop the others`() throws {
    struct Refused: Error {}
    let queue = try Queue()
    let (refused, expired) = (try queue.enqueue(), try queue.enqueue())
    let behind = try queue.enqueue(values: [ResponseValue("id", of: refused, at: "/id")])
    let store = queue.store { _, ends in
      if ends.contains(where: { $0.intent == refused }) { throw EndRefused(error: Refused()) }
    }
    let lease = { try queue.database.write { db in try store.lease(limit: 10, in: db) } }
    queue.clock.advance(by: .seconds(6 * 86_400))
    let late = try queue.enqueue()
    queue.clock.advance(by: .seconds(86_400))
    let turn = try lease()
    #expect(turn.leased.map(\.name) == [late])
    #expect(turn.failures == [.database("Refused()")])
    #expect(try queue.outcome(expired) == .expired)
    for intent in [refused, behind] { #expect(try queue.outcome(intent) == nil) }
    #expect(try lease().failures.isEmpty)
    queue.clock.advance(by: .seconds(60))
    #expect(try lease().failures.count == 1)
  }

  @Test(arguments: [nil, "submit"])
  func `a response is read as it was stored where a seal has come since`(once: String?) throws {
    let queue = try Queue(.sealed)
    let request = IntentRequest(method: .post, path: "/", body: .bytes([1]))
    let enqueue = { [store = queue.store(isUnsealed: true)] in
      try queue.database.write { db in try store.enqueue(request, .init(once: once), in: db) }
    }
    let intent = try enqueue()
    let completed = QueuedOutcome.completed(Response(201, [:], "7"), wasReplayed: false)
    try queue.end(try #require(try queue.lease().first), completed)
    #expect(try queue.outcome(intent) == completed)
    #expect(try (enqueue() == intent) == (once != nil))
  }

  @Test func `an enqueuing that fails leaves nothing, also in a transaction that goes on`() throws {
    let queue = try Queue()
    let key = try #require(IntentKey("gone"))
    let gone = ResponseValue("id", of: QueuedIntent(id: 99, key: key), at: "/id")
    try queue.database.write { [store = queue.store()] db in
      _ = #expect(throws: OutboxError.notFound) {
        try store.enqueue(
          IntentRequest(method: .post, path: "/"), .init(once: "submit", values: [gone]), in: db)
      }
    }
    #expect(try queue.statistics() == QueueStatistics())
  }

  @Test(arguments: ["v1/orders", "@example.org/", ""])
  func `a path that would name another server is not enqueued`(path: String) throws {
    let queue = try Queue()
    #expect(throws: OutboxError.invalidPath(path)) { try queue.enqueue(path) }
  }
}
