import Foundation
import Synchronization
import TestSupport
import Testing

/// Routes each request of which is a batch: every item has a record of its own.
struct BatchTests {
  private static let members = "{items: /orders, key: /id, results: /results}"

  static func configuration(
    _ store: StoreKind = .embedded, _ more: [String: String] = [:]
  ) -> Configuration {
    Configuration(store: store, route: ["batch": members].merging(more) { $1 })
  }

  /// A body with these items, each of which has an id and an amount.
  private static func body(_ items: [(String, Int)]) -> String {
    let texts = items.map { #"{"id":"\#($0.0)","n":\#($0.1)}"# }
    return #"{"orders":[\#(texts.joined(separator: ","))],"currency":"eur"}"#
  }

  private static func ids(_ body: some Sequence<UInt8>, _ member: String) -> [String] {
    let document = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
    let items = document?[member] as? [[String: Any]] ?? []
    return items.map { $0["id"] as? String ?? $0["code"] as? String ?? "?" }
  }

  /// A backend that executes each item, and numbers its results.
  private static func serve(_ rig: Rig, gates: [String: Gate] = [:]) -> Executions {
    let executions = Executions()
    rig.backend.on("/v1/orders") { request in
      let ids = ids(request.body, "orders")
      executions.add(ids)
      let results = ids.map { #"{"id":"\#($0)","run":\#(executions.count(of: $0))}"# }
      var reply = Reply(201, body: #"{"results":[\#(results.joined(separator: ","))],"took":1}"#)
      reply.gate = ids.lazy.compactMap { gates[$0] }.first
      return reply
    }
    return executions
  }

  func send(_ rig: Rig, _ items: [(String, Int)]) async throws -> ReceivedResponse {
    try await rig.order(nil, body: Self.body(items))
  }

  @Test(arguments: StoreKind.allCases)
  func `each item runs once, in whatever batch it comes`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      let executions = Self.serve(rig)
      let first = try await send(rig, [("a", 1), ("b", 1), ("c", 1)])
      #expect(first.status == 201)
      #expect(first.text.hasSuffix(#""took":1}"#))
      #expect(first.idempotencyStatus == "batch; executed=3; replayed=0; refused=0")
      let again = try await send(rig, [("a", 1), ("b", 1), ("c", 1)])
      #expect(again.status == 201)
      #expect(again.idempotencyStatus == "batch; executed=0; replayed=3; refused=0")
      let mixed = try await send(rig, [("d", 1), ("c", 1), ("a", 1), ("e", 1)])
      #expect(mixed.status == 201)
      #expect(mixed.idempotencyStatus == "batch; executed=2; replayed=2; refused=0")
      #expect(Self.ids(mixed.body, "results") == ["d", "c", "a", "e"])
      #expect(rig.backend.requests.count == 2)
      #expect(rig.backend.requests[1].text == Self.body([("d", 1), ("e", 1)]))
      #expect(
        executions.all == ["a", "b", "c", "d", "e"].map { ($0, 1) }.reduce(into: [:]) { $0[$1.0] = $1.1 })
      try await rig.semel.counter("semel_batch_items_total", label: #"outcome="replayed""#, becomes: 5)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `another payload is refused for its item alone`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      let executions = Self.serve(rig)
      #expect(try await send(rig, [("a", 1)]).status == 201)
      let mixed = try await send(rig, [("b", 1), ("a", 2), ("b", 1), ("b", 3)])
      #expect(mixed.status == 207)
      #expect(Self.ids(mixed.body, "results") == ["b", "payload_mismatch", "b", "payload_mismatch"])
      #expect(mixed.idempotencyStatus == "batch; executed=2; replayed=0; refused=2")
      #expect(executions.all == ["a": 1, "b": 1])
      expectRefused(try await send(rig, [("a", 2)]), 409, "payload_mismatch", retryable: false)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `batches that share items in flight get their own outcomes, in either order`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      let gates = ["a": Gate(), "d": Gate()]
      let executions = Self.serve(rig, gates: gates)
      async let first = send(rig, [("a", 1), ("b", 1), ("c", 1)])
      try await rig.backend.arrived(1)
      // It owns d alone, sends that, and waits for the others only once d has ended.
      async let second = send(rig, [("c", 1), ("b", 1), ("d", 1)])
      try await rig.backend.arrived(2)
      gates["a"]?.open()
      #expect(try await first.idempotencyStatus == "batch; executed=3; replayed=0; refused=0")
      gates["d"]?.open()
      let response = try await second
      #expect(response.idempotencyStatus == "batch; executed=1; replayed=2; refused=0")
      #expect(Self.ids(response.body, "results") == ["c", "b", "d"])
      #expect(executions.all == ["a": 1, "b": 1, "c": 1, "d": 1])
    }
  }

  @Test func `many batches in every order run each item once`() async throws {
    try await Rig.run(Self.configuration(.redis)) { rig in
      let executions = Self.serve(rig)
      let responses = try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for number in 0..<40 {
          let items = (0..<6).map { ("k\((number * 7 + $0 * ($0 % 2 == 0 ? 5 : 11)) % 25)", 1) }
          let unique = Dictionary(items) { first, _ in first }.map { ($0.key, $0.value) }
          group.addTask { try await rig.order(nil, body: Self.body(unique)) }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(responses.allSatisfy { $0.status == 200 || $0.status == 201 })
      #expect(executions.all.values.allSatisfy { $0 == 1 })
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a response that cannot be split is honest about every item`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, ["outcomes": "{retry: [503]}"])) { rig in
      rig.backend.on("/v1/orders") { request in
        let ids = Self.ids(request.body, "orders")
        if ids.contains("busy") { return Reply(503, body: "later") }
        if ids.contains("bad") { return Reply(422, body: "no") }
        if ids.contains("odd") { return Reply(201, body: #"{"results":[1]}"#) }
        return Reply(200, body: #"{"results":[\#(ids.map { _ in "1" }.joined(separator: ","))]}"#)
      }
      for _ in 1...2 {
        let busy = try await send(rig, [("busy", 1), ("x", 1)])
        #expect(busy.status == 503 && busy.text == "later")
        #expect(busy.idempotencyStatus == "not-stored")
      }
      let refused = try await send(rig, [("bad", 1), ("y", 1)])
      #expect(refused.status == 422 && refused.idempotencyStatus == "executed")
      let replayed = try await send(rig, [("bad", 1), ("y", 1)])
      #expect(replayed.status == 422 && replayed.text == "no" && replayed.idempotencyStatus == "replayed")
      let partly = try await send(rig, [("y", 1), ("new", 1)])
      #expect(partly.status == 207)
      #expect(partly.text.contains(#""code":"response_not_kept""#))
      #expect(try await send(rig, [("odd", 1), ("z", 1)]).problem?.code == "outcome_unknown")
      #expect(try await send(rig, [("z", 1)]).problem?.code == "outcome_unknown")
      #expect(rig.backend.requests.count == 5)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a lost response leaves every item unknown, and none runs again`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      rig.backend.on("/v1/orders") { request in
        Self.ids(request.body, "orders").contains("lost")
          ? Reply(201, body: "", ending: .closedWithoutResponse)
          : Reply(200, body: #"{"results":[1]}"#)
      }
      expectRefused(
        try await send(rig, [("lost", 1), ("m", 1)]), 502, "outcome_unknown", retryable: false)
      let later = try await send(rig, [("m", 1), ("n", 1)])
      #expect(later.status == 207)
      #expect(later.text.contains(#""code":"outcome_unknown""#))
      #expect(rig.backend.requests.count == 2)
      #expect(rig.backend.requests[1].text == Self.body([("n", 1)]))
      // The connection has ended, so that no late response can settle it.
      expectRefused(
        try await send(rig, [("lost", 1), ("m", 1)]), 409, "outcome_unknown", retryable: false)
      try await rig.semel.counter("semel_unknown_returns_total", becomes: 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a late response is recorded for every item`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, ["response_timeout": "500ms"])) { rig in
      let gate = Gate()
      let executions = Self.serve(rig, gates: ["a": gate])
      expectRefused(try await send(rig, [("a", 1), ("b", 1)]), 504, "outcome_unknown", retryable: true)
      gate.open()
      try await rig.semel.counter("semel_late_responses_total", isAtLeast: 2)
      let again = try await send(rig, [("b", 1), ("a", 1)])
      #expect(again.idempotencyStatus == "batch; executed=0; replayed=2; refused=0")
      #expect(executions.all == ["a": 1, "b": 1])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `the items under which Semel was killed are unknown, and none runs again`(store: StoreKind)
    async throws
  {
    var configuration = Self.configuration(store)
    configuration.isAppendOnly = true
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      let executions = Self.serve(rig, gates: ["a": gate])
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText(nil, body: Self.body([("a", 1), ("b", 1)])))
      try await rig.backend.arrived(1)
      try await rig.semel.kill()
      gate.open()
      try await rig.semel.start()
      expectRefused(
        try await send(rig, [("b", 1), ("a", 1)]), 409, "outcome_unknown", retryable: true)
      #expect(executions.all == ["a": 1, "b": 1])
    }
  }

  @Test(arguments: StoreKind.allCases, [409, 422])
  func `a refusal as a duplicate ends no item beside a lost one, and frees those that were not lost`(
    store: StoreKind, status: Int
  ) async throws {
    var configuration = Self.configuration(store, ["on_unknown": "retry"])
    configuration.upstream["settle"] = "100ms"
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders") { [log = rig.backend.log] _ in
        log.value.requests.count == 1
          ? Reply(201, body: "", ending: .closedWithoutResponse) : Reply(status, body: #"{"error":"exists"}"#)
      }
      expectRefused(try await send(rig, [("lost", 1)]), 502, "outcome_unknown", retryable: true)
      // Within `settle` the second item is sent alone, and its refusal is its own.
      let deadline = ContinuousClock.now + .seconds(20)
      var number = 0
      var again: ReceivedResponse
      repeat {
        number += 1
        again = try await send(rig, [("lost", 1), ("new\(number)", 1)])
      } while rig.backend.requests.last?.text.contains("lost") != true && ContinuousClock.now < deadline
      #expect(again.status == 207, "\(again.text)")
      for (item, state) in [("lost", "unknown"), ("new\(number)", "released")] {
        let shown = try await rig.key(["show"] + Rig.selection(item)).output
        #expect(shown.contains(#""state" : "\#(state)""#), "\(shown)")
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a batch whose client hangs up runs to its end`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      let gate = Gate()
      let executions = Self.serve(rig, gates: ["a": gate])
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText(nil, body: Self.body([("a", 1), ("b", 1)])))
      try await rig.backend.arrived(1)
      try await connection.close()
      async let again = send(rig, [("b", 1), ("a", 1)])
      gate.open()
      #expect(try await again.idempotencyStatus == "batch; executed=0; replayed=2; refused=0")
      #expect(executions.all == ["a": 1, "b": 1])
    }
  }

  @Test func `the outcomes of a batch during which Redis was killed are stored once it is back`() async throws
  {
    var configuration = Self.configuration(.redis)
    configuration.isAppendOnly = true
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      let executions = Self.serve(rig, gates: ["a": gate])
      async let first = send(rig, [("a", 1), ("b", 1)])
      try await rig.backend.arrived(1)
      rig.redis?.kill()
      gate.open()
      #expect(try await first.idempotencyStatus == "batch; executed=2; replayed=0; refused=0")
      expectRefused(try await send(rig, [("c", 1)]), 503, "store_unavailable", retryable: true)
      try await rig.redis?.start()
      let deadline = ContinuousClock.now + .seconds(20)
      var again = try await send(rig, [("b", 1), ("a", 1)])
      while again.status != 201, ContinuousClock.now < deadline {
        again = try await send(rig, [("b", 1), ("a", 1)])
      }
      #expect(again.idempotencyStatus == "batch; executed=0; replayed=2; refused=0")
      #expect(executions.all == ["a": 1, "b": 1])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a large batch runs each item once`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, ["batch": "{items: '', key: /id, results: ''}"])) { rig in
      rig.backend.on("/v1/orders") { Reply(200, body: $0.text) }
      let items = (0..<100).map { #"{"id":"k\#($0)","text":"\#(String(repeating: "x", count: 1000))"}"# }
      let body = "[\(items.joined(separator: ","))]"
      let first = try await rig.order(nil, body: body)
      #expect(first.text == body)
      #expect(first.idempotencyStatus == "batch; executed=100; replayed=0; refused=0")
      let again = try await rig.order(nil, body: "[\(items.reversed().joined(separator: ","))]")
      #expect(again.text == "[\(items.reversed().joined(separator: ","))]")
      #expect(again.idempotencyStatus == "batch; executed=0; replayed=100; refused=0")
      let more = try await rig.order(nil, body: "[\(items.joined(separator: ",")),{\"id\":\"z\"}]")
      expectRefused(more, 400, "bad_request", retryable: false)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `many batches of one caller with large responses are all recorded`() async throws {
    try await Rig.run(Self.configuration()) { rig in
      let text = String(repeating: "y", count: 20_000)
      rig.backend.on("/v1/orders") { request in
        let results = Self.ids(request.body, "orders").map { #"{"id":"\#($0)","text":"\#(text)"}"# }
        return Reply(201, body: #"{"results":[\#(results.joined(separator: ","))]}"#)
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<60 {
          group.addTask {
            let response = try await send(rig, [("a\(number)", 1), ("b\(number)", 1)])
            #expect(response.status == 201)
            #expect(response.idempotencyStatus == "batch; executed=2; replayed=0; refused=0")
          }
        }
        try await group.waitForAll()
      }
      // No more than max_response_body at once.
      let again = try await send(rig, (0..<60).map { ("a\($0)", 1) })
      #expect(again.status == 207)
      #expect(again.idempotencyStatus == "batch; executed=0; replayed=52; refused=8")
      #expect(Self.ids(again.body, "results").count { $0 == "response_not_kept" } == 8)
      let copies = try await send(rig, (0..<60).map { _ in ("a59", 1) })
      #expect(copies.idempotencyStatus == "batch; executed=0; replayed=52; refused=8")
      let alone = try await send(rig, [("a59", 1)])
      #expect(alone.idempotencyStatus == "batch; executed=0; replayed=1; refused=0")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `results in another order belong to their items, and a client need not wait`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { request in
        let ids = Self.ids(request.body, "orders")
        let results = ids.reversed().map { #"{"id":"\#($0)"}"# }
        var reply = Reply(201, body: #"{"results":[\#(results.joined(separator: ","))]}"#)
        if ids.contains("a") { reply.gate = gate }
        return reply
      }
      async let first = send(rig, [("a", 1), ("b", 1)])
      try await rig.backend.arrived(1)
      let hasty = try await rig.order(nil, body: Self.body([("b", 1), ("c", 1)]), [("Prefer", "wait=0")])
      #expect(hasty.status == 207)
      #expect(Self.ids(hasty.body, "results") == ["in_flight", "c"])
      gate.open()
      #expect(Self.ids(try await first.body, "results") == ["a", "b"])
      let again = try await send(rig, [("c", 1), ("b", 1), ("a", 1)])
      #expect(Self.ids(again.body, "results") == ["c", "b", "a"])
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a batch that cannot be read is refused, and nothing is sent`() async throws {
    try await Rig.run(Self.configuration()) { rig in
      for body in ["", "[]", #"{"orders":[]}"#, #"{"orders":[{"id":"a"}],"orders":[]}"#] {
        expectRefused(try await rig.order(nil, body: body), 400, "bad_request", retryable: false)
      }
      let unkeyed = try await rig.order(nil, body: #"{"orders":[{"id":"a"},{"n":1},{}]}"#)
      expectRefused(unkeyed, 400, "key_missing", retryable: false)
      #expect(unkeyed.text.contains("items 1, 2 have none"))
      let mistyped = try await rig.order(nil, body: #"{"orders":[{"id":"a"},{"id":true}]}"#)
      expectRefused(mistyped, 400, "key_invalid", retryable: false)
      #expect(mistyped.text.contains("as a JSON string or an integer; see item 1 of the batch"))
      #expect(rig.backend.requests.isEmpty)
    }
  }
}

/// The items that a backend has executed.
private final class Executions: Sendable {
  private let counts = Mutex<[String: Int]>([:])

  func add(_ ids: [String]) {
    counts.withLock { counts in for id in ids { counts[id, default: 0] += 1 } }
  }

  func count(of id: String) -> Int { counts.withLock { $0[id] ?? 0 } }

  var all: [String: Int] { counts.withLock { $0 } }
}
