import ClientTestSupport
import GRDB
import HTTPTypes
import SemelClient
@testable import SemelOutbox
import Testing

struct GroupTests {
  private func leasedIDs(_ queue: Queue) throws -> [Int64] { try queue.lease().map(\.name.id) }

  @Test func `a group is sent one after the other, and groups side by side`() throws {
    let queue = try Queue()
    let first = try queue.enqueue(group: "a")
    let second = try queue.enqueue(group: "a")
    let other = try queue.enqueue(group: "b")
    let free = try queue.enqueue()
    let leased = try queue.lease()
    #expect(leased.map(\.name) == [first, other, free])
    #expect(try queue.lease().isEmpty)
    try queue.end(try #require(leased.first))
    #expect(try queue.lease().map(\.name) == [second])
  }

  @Test func `a postponed head holds its group back`() throws {
    let queue = try Queue()
    try queue.enqueue(group: "a")
    try queue.enqueue(group: "a")
    let head = try #require(try queue.lease().first)
    try queue.database.write { db in try queue.store().postpone(head, by: .seconds(60), in: db) }
    #expect(try queue.lease().isEmpty)
  }

  @Test(arguments: [QueuedOutcome.rejected(Response(422)), .unknown(nil), .expired])
  func `after a failed head its group continues, fails or is held, by choice`(failure: QueuedOutcome) throws {
    for rule in GroupRule.allCases {
      let queue = try Queue()
      let head = try queue.enqueue(group: "a", rule: rule)
      let second = try queue.enqueue(group: "a")
      let third = try queue.enqueue(group: "a")
      try queue.end(try #require(try queue.lease().first), failure)
      switch rule {
      case .proceed: #expect(try leasedIDs(queue) == [second.id])
      case .fail:
        #expect(try leasedIDs(queue).isEmpty)
        #expect(queue.ended[second.id] == .cancelled(.groupFailed(head.id)))
        #expect(queue.ended[third.id] == .cancelled(.groupFailed(head.id)))
        let later = try queue.enqueue(group: "a")
        #expect(try leasedIDs(queue) == [later.id])
      case .hold:
        #expect(try leasedIDs(queue).isEmpty)
        try queue.enqueue(group: "a")
        #expect(try leasedIDs(queue).isEmpty)
        #expect(try queue.statistics().heldGroups == 1)
        try queue.database.write { db in try queue.store().resume(group: "a", in: db) }
        #expect(try leasedIDs(queue) == [second.id])
      }
    }
  }

  @Test func `a newer PUT of an object replaces an unsent older one, and a DELETE wins`() throws {
    let queue = try Queue()
    let older = try queue.enqueue("/lists/1", method: .put, coalesces: true)
    let newer = try queue.enqueue("/lists/1", method: .put, coalesces: true)
    #expect(queue.ended[older.id] == .cancelled(.replaced(newer.id)))
    let other = try queue.enqueue("/lists/2", method: .put, coalesces: true)
    let deletion = try queue.enqueue("/lists/1", method: .delete, coalesces: true)
    #expect(queue.ended[newer.id] == .cancelled(.replaced(deletion.id)))
    let late = try queue.enqueue("/lists/1", method: .put, coalesces: true)
    #expect(queue.ended[late.id] == .cancelled(.replaced(deletion.id)))
    #expect(try leasedIDs(queue) == [other.id, deletion.id])
  }

  @Test func `a PUT that was sent is not replaced`() throws {
    let queue = try Queue()
    try queue.enqueue("/lists/1", method: .put, coalesces: true)
    let sent = try #require(try queue.lease().first)
    try queue.enqueue("/lists/1", method: .put, coalesces: true)
    #expect(queue.ended.isEmpty)
    try queue.database.write { db in try queue.store().postpone(sent, by: .zero, in: db) }
    try queue.enqueue("/lists/1", method: .put, coalesces: true)
    #expect(queue.ended[sent.name.id] == nil)
    #expect(queue.endCount == 1)
  }

  @Test(arguments: [
    (HTTPRequest.Method.put, HTTPRequest.Method.put, QueueRules.CoalescingAction.dropOlder),
    (.patch, .put, .dropOlder), (.put, .patch, .keepBoth), (.patch, .patch, .keepBoth),
    (.post, .put, .keepBoth),
    (.put, .delete, .dropOlder), (.post, .delete, .keepBoth), (.delete, .put, .dropNewer),
    (.delete, .delete, .dropNewer),
  ])
  func `two changes of one object become one only where nothing is lost`(
    older: HTTPRequest.Method, newer: HTTPRequest.Method, action: QueueRules.CoalescingAction
  ) {
    #expect(QueueRules.coalescing(older: older, newer: newer) == action)
  }

  @Test func `a later intent takes the server's id from an earlier one's response`() throws {
    let queue = try Queue(.sealed)
    let list = try queue.enqueue("/lists", body: #"{"name":"Home"}"#)
    let values = [ResponseValue("list", of: list, at: "/id")]
    let task = try queue.enqueue(
      "/lists/{semel:list}/tasks", values: values, body: #"{"list":"{semel:list}","url":"x/{semel:list}"}"#)
    let leased = try queue.lease()
    #expect(leased.map(\.name) == [list])
    try queue.end(leased[0], .completed(Response(201, [:], #"{"id":17}"#), wasReplayed: false))
    let dependent = try #require(try queue.lease().first)
    #expect(dependent.name == task)
    #expect(dependent.intent.request.path == "/lists/17/tasks")
    #expect(dependent.intent.request.body == .bytes([UInt8](#"{"list":17,"url":"x/17"}"#.utf8)))
    queue.clock.advance(by: .seconds(31))
    #expect(try queue.lease().first?.intent == dependent.intent)
  }

  @Test func `a second tap finds the intent into whose request a value has been put since`() throws {
    let queue = try Queue(.sealed)
    let list = try queue.enqueue("/lists")
    let tap = {
      try queue.enqueue(
        "/lists/{semel:list}/tasks", once: "add", values: [ResponseValue("list", of: list, at: "/id")],
        body: #"{"list":"{semel:list}"}"#)
    }
    let task = try tap()
    try queue.end(
      try #require(try queue.lease().first),
      .completed(Response(201, [:], #"{"id":17}"#), wasReplayed: false))
    #expect(try tap() == task)
    let sent = try #require(try queue.lease().first)
    #expect(try tap() == task)
    try queue.end(sent)
    #expect(try tap() == task)
    #expect(throws: OutboxError.onceMismatch(task)) { try queue.enqueue("/lists/18/tasks", once: "add") }
  }

  @Test(arguments: [
    QueuedOutcome.rejected(Response(422)), .unknown(nil),
    .completed(Response(201, [:], "{}"), wasReplayed: false),
  ])
  func `an intent that cannot have its value ends, and those that need its own with it`(
    outcome: QueuedOutcome
  ) throws {
    let queue = try Queue()
    let first = try queue.enqueue()
    let second = try queue.enqueue(values: [ResponseValue("a", of: first, at: "/id")])
    let third = try queue.enqueue(values: [ResponseValue("b", of: second, at: "/id")])
    try queue.end(try #require(try queue.lease().first), outcome)
    #expect(queue.ended[second.id] == .cancelled(.dependencyFailed(first.id)))
    #expect(queue.ended[third.id] == .cancelled(.dependencyFailed(second.id)))
  }

  @Test func `a value of a response that is there already is taken at once`() throws {
    let queue = try Queue()
    let first = try queue.enqueue()
    try queue.end(
      try #require(try queue.lease().first),
      .completed(Response(201, [:], #"{"id":"a b"}"#), wasReplayed: false))
    try queue.enqueue("/x/{semel:v}", values: [ResponseValue("v", of: first, at: "/id")])
    #expect(try queue.lease().map(\.intent.request.path) == ["/x/a%20b"])
    let failed = try queue.enqueue(values: [ResponseValue("v", of: first, at: "/missing")])
    #expect(queue.ended[failed.id] == .cancelled(.dependencyFailed(first.id)))
  }

  @Test(
    arguments: [
      ("", #"{"a":[1,{"b/c":"x"}]}"#, nil), ("/a/0", #"{"a":[1]}"#, "1"),
      ("/a/1/b~1c", #"{"a":[1,{"b/c":"x"}]}"#, "\"x\""),
      ("/a", #"{"a":9007199254740993}"#, "9007199254740993"), ("/a", #"{"a":true}"#, "true"),
      ("/a", #"{"a":null}"#, nil),
      ("/b", #"{"a":1}"#, nil), ("a", #"{"a":1}"#, nil),
    ] as [(String, String, String?)])
  func `a value is found by its JSON pointer`(pointer: String, document: String, literal: String?) {
    #expect(JSONValue(document: [UInt8](document.utf8))?.value(at: pointer)?.literal == literal)
  }
}
