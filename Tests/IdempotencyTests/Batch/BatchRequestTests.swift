import Foundation
import NIOCore
import Testing
import Wire

@testable import Idempotency

struct BatchRequestTests {
  static let policy = BatchPolicy(items: "/orders", key: "/id", results: "/results")

  /// The batch as a route reads it.
  private func read(_ body: String, max: Int = 3) throws(Problem) -> BatchRequest {
    var policy = Self.policy
    policy.maxItems = max
    var keys = KeyPolicy()
    keys.from = [policy.keySource]
    return try BatchRequest(
      ByteBuffer(string: body), head: Request("application/json", body).head, policy: policy, keys: keys)
  }

  @Test func `a batch is split into its items, and keeps its text around any of them`() throws {
    let body = #" {"a": [1], "orders" : [ {"id":"x","n":[1,{"b":"]"}]} , {"id":7} ], "z":{}} "#
    let batch = try read(body)
    #expect(batch.items.map { String(buffer: $0.text) } == [#"{"id":"x","n":[1,{"b":"]"}]}"#, #"{"id":7}"#])
    #expect(batch.items.map(\.key.bytes) == [Array("x".utf8), Array("7".utf8)])
    #expect(String(buffer: batch.body(of: [0, 1])) == body)
    #expect(String(buffer: batch.body(of: [1])) == #" {"a": [1], "orders" : [{"id":7}], "z":{}} "#)
  }

  @Test(arguments: [
    "", "[]", "{}", #"{"orders":{}}"#, #"{"orders":[]}"#, #"{"orders":[{"id":"x"}]"#,
    #"{"orders":[{"id":"x"}],"orders":[{"id":"y"}]}"#, #"{"orders":[{"id":"x","id":"y"}]}"#,
    #"{"orders":[{"id":"x"}],"a":{"b":1,"b":2}}"#,
  ])
  func `a body that may be read in two ways, or has no items, is refused`(_ body: String) {
    #expect(throws: Problem.badRequest(.batch)) { try read(body) }
  }

  @Test func `an item without a key, or with a bad one, refuses the batch`() {
    #expect(throws: Problem.self) { try read(#"{"orders":[{"id":"x"},{}]}"#) }
    #expect(throws: Problem.self) { try read(#"{"orders":[{"id":"a b"}]}"#) }
    #expect(throws: Problem.self) { try read(#"{"orders":[5]}"#) }
    #expect(throws: Problem.badRequest(.batchSize)) { try read(#"{"orders":[{"id":1},{"id":2}]}"#, max: 1) }
  }

  @Test func `a refusal names every item without a key`() {
    #expect(throws: Problem.keyMissing(inItems: [1], at: "/id")) { try read(#"{"orders":[{"id":"x"},{}]}"#) }
    #expect(throws: Problem.keyMissing(inItems: [0, 2], at: "/id")) {
      try read(#"{"orders":[{"n":1},{"id":"x"},5]}"#)
    }
  }

  /// The fingerprints of all items of a body.
  private func prints(_ body: String, ignore: [String] = []) throws -> [Fingerprint] {
    let batch = try read(body)
    let request = Request("application/json", body)
    return batch.fingerprints(
      of: Array(batch.items.indices), by: Recipe(ignore: ignore.map(PayloadPart.json)), head: request.head,
      method: ByteBuffer(string: "POST"), target: try RequestTarget(request.head))
  }

  @Test func `an item has one fingerprint in every batch with the same text around it`() throws {
    let both = try prints(#"{"orders":[{"id":"x","n":1},{"id":"y"}],"c":"eur"}"#)
    #expect(try prints(#"{"c":"eur","orders":[{"n":1,"id":"x"}]}"#)[0] == both[0])
    #expect(try prints(#"{"orders":[{"id":"y"}],"c":"eur"}"#)[0] == both[1])
    #expect(both[0] != both[1])
    #expect(try prints(#"{"orders":[{"id":"x","n":2}],"c":"eur"}"#)[0] != both[0])
    #expect(try prints(#"{"orders":[{"id":"x","n":1}],"c":"usd"}"#)[0] != both[0])
    let ignoring = try prints(#"{"orders":[{"id":"x","at":1}],"c":"eur"}"#, ignore: ["/at", "/c"])
    #expect(try prints(#"{"orders":[{"id":"x","at":2}],"c":"usd"}"#, ignore: ["/at", "/c"]) == ignoring)
  }
}

struct BatchResultsTests {
  private func keys(_ texts: String...) -> [IdempotencyKey] {
    texts.map { IdempotencyKey(checked: Array($0.utf8)) }
  }

  private func results(_ body: String, _ keys: [IdempotencyKey]) -> [String]? {
    BatchResults(ByteBuffer(string: body), keys: keys, policy: BatchRequestTests.policy)?.results
      .map { String(buffer: $0) }
  }

  @Test func `results without keys are taken in order, and those with keys by these`() {
    #expect(results(#"{"results":[1,"two"]}"#, keys("x", "y")) == ["1", #""two""#])
    #expect(
      results(#"{"results":[{"id":"y"},{"id":"x"}]}"#, keys("x", "y")) == [#"{"id":"x"}"#, #"{"id":"y"}"#])
  }

  @Test(arguments: [
    "", "[]", "{}", #"{"results":[1]}"#, #"{"results":[1,2,3]}"#, #"{"results":[1,2],"results":[3,4]}"#,
    #"{"results":[{"id":"x"},{"id":"x"}]}"#, #"{"results":[{"id":"x"},{"id":"z"}]}"#,
    #"{"results":[{"id":"x"},{}]}"#, #"{"results":[{"id":3.0},{"id":2.0}]}"#,
    #"{"results":[{"id":null},{"id":null}]}"#,
    #"{"results":[{"id":""},{"id":true}]}"#, #"{"results":[{"id":{}},{"id":[]}]}"#,
    #"{"results":[{"id":null},{}]}"#,
  ])
  func `results that may be another item's prove nothing`(_ body: String) {
    #expect(results(body, keys("x", "y")) == nil)
  }

  @Test func `of an array with more elements than are wanted, one more is taken apart`() throws {
    let text = #"{"a":[1, [2], 3 ,4],"b":5}"#
    for (max, count) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 4), (.max, 4)] {
      let array = try #require(JSONArrayText(ByteBuffer(string: text), at: "/a", maxElements: max))
      #expect(array.elements.map { String(buffer: $0) } == Array(["1", "[2]", "3", "4"].prefix(count)))
      // Text that was not taken apart is text like any other.
      #expect(String(buffer: array.text(with: [])).hasSuffix(max < 3 ? #"4],"b":5}"# : #"],"b":5}"#))
    }
  }

  @Test func `the response keeps its text around the results of all`() throws {
    let split = try #require(
      BatchResults(
        ByteBuffer(string: #"{"results":[ 1 ],"took":3}"#), keys: keys("x"), policy: BatchRequestTests.policy)
    )
    let body = split.body(with: ["9", "1"].map { ByteBuffer(string: $0) })
    #expect(String(buffer: body) == #"{"results":[9,1],"took":3}"#)
    #expect(String(buffer: JSONArrayText(around: "/a/b~1c").text(with: [])) == #"{"a":{"b/c":[]}}"#)
  }
}

struct BatchResponseTests {
  private static func record(_ status: Int, _ body: String) -> CompletedRecord {
    .sample(.whole(RecordedResponse(status: status, fields: ByteBuffer(), body: ByteBuffer(string: body))))
  }

  private func response(_ elements: BatchElement..., limit: Int = 1000) -> BatchResponse.Content {
    BatchResponse(elements, around: nil, status: nil, policy: BatchRequestTests.policy, limit: limit).content
  }

  @Test(arguments: ["", "ok", "{", "1 2"])
  func `a record that was resolved with no JSON does not break the others`(body: String) throws {
    guard
      case .assembled(let status, let text) = response(
        BatchElement(Self.record(200, body)), .executed(ByteBuffer(string: "1")))
    else { throw Failure.notAssembled }
    #expect(status == 207)
    let document = try JSONSerialization.jsonObject(with: Data(Array(buffer: text))) as? [String: Any]
    let results = try #require(document?["results"] as? [Any])
    #expect((results[0] as? [String: Any])?["code"] as? String == "response_not_kept")
    #expect(results[1] as? Int == 1)
  }

  private enum Failure: Error { case notAssembled }

  @Test func `results that are too large together are refused, those of this delivery last`() throws {
    let large = Self.record(201, #""\#(String(repeating: "x", count: 60))""#)
    let own = BatchElement.executed(ByteBuffer(string: String(repeating: "1", count: 30)))
    let mixed = response(.recorded(large), own, .recorded(large), limit: 100)
    guard case .assembled(207, let text) = mixed else { throw Failure.notAssembled }
    #expect(String(buffer: text).hasPrefix(#"{"results":["xxx"#))
    #expect(String(buffer: text).contains(#"111,{"type":"/.well-known/idempotency#response_not_kept""#))
    #expect(response(.recorded(large), .recorded(large), limit: 10) == .refused(.resultTooLarge(status: 201)))
  }

  @Test func `a refusal that all items share is the response, whatever it comes from`() {
    let notKept = BatchElement.recorded(.sample(.statusOnly(status: 201, location: nil)))
    #expect(response(notKept, notKept) == .refused(.responseNotKept(status: 201, location: nil)))
  }

  @Test func `what ended in one way for all is the response`() {
    let problem = Problem.inFlight(retryAfter: 1000)
    #expect(response(.refused(problem), .refused(problem)) == .refused(problem))
    let refused = Self.record(422, "no")
    #expect(response(.recorded(refused), .recorded(refused)) == .replayed(refused))
    let made = Self.record(201, "1")
    #expect(
      response(.recorded(made), .recorded(made))
        == .assembled(status: 201, body: ByteBuffer(string: #"{"results":[1,1]}"#)))
  }

  @Test(arguments: [Milliseconds(1000), nil])
  func `an item of a lost response may be retried while it may settle`(retryAfter: Milliseconds?) throws {
    let lost = BatchElement.unsplit(status: 502, .unknown, retryAfter: retryAfter)
    let mixed = response(.recorded(Self.record(201, "1")), lost)
    guard case .assembled(207, let body) = mixed else { throw Failure.notAssembled }
    #expect(String(buffer: body).contains(#""retryable":\#(retryAfter != nil)"#), "\(String(buffer: body))")
  }

  @Test(arguments: [(503, OutcomeClass.retry), (422, .final)])
  func `in a mixed batch an item states the class of a response that was not split`(
    status: Int, outcome: OutcomeClass
  ) throws {
    let own = BatchElement.unsplit(status: status, outcome, retryAfter: nil)
    let isFinal = outcome == .final
    for element in [own] + (isFinal ? [.recorded(Self.record(status, "no"))] : []) {
      let mixed = response(.recorded(Self.record(201, "1")), element)
      guard case .assembled(207, let body) = mixed else { throw Failure.notAssembled }
      let text = String(buffer: body)
      #expect(text.contains(isFinal ? #""code":"response_not_kept""# : #""code":"upstream_unreachable""#))
      #expect(text.contains(#""retryable":\#(!isFinal)"#), "\(text)")
      #expect(text.contains(#""original_status":422"#) == isFinal, "\(text)")
    }
  }

  @Test func `a batch of which a part is refused is no success`() throws {
    let mixed = response(.executed(ByteBuffer(string: "1")), .refused(.keyExpired))
    guard case .assembled(207, let body) = mixed else {
      Issue.record("\(mixed)")
      return
    }
    #expect(String(buffer: body).hasPrefix(#"{"results":[1,{"type":"/.well-known/idempotency#key_expired""#))
    let counts = BatchElement.Counts([
      .executed(ByteBuffer()), .recorded(Self.record(201, "1")), .recorded(Self.record(422, "no")),
      .unsplit(status: 503, .retry, retryAfter: nil), .refused(.keyExpired),
    ])
    #expect(counts.executed == 1 && counts.replayed == 1 && counts.refused == 3)
  }
}
