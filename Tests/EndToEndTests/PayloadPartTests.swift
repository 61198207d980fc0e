import Foundation
import TestSupport
import Testing

/// Routes that say which parts of a payload count.
struct PayloadPartTests {
  private static let hooks = "/v1/hooks"

  /// A notification of a topic, which is sent as `text/plain` and anew signed for each delivery.
  private static func notification(_ id: String, delivery: Int) -> String {
    #"{"Type":"Notification","MessageId":"\#(id)","Message":"{\"a\":1}","Timestamp":"T\#(delivery)","Signature":"S\#(delivery)"}"#
  }

  @Test(arguments: StoreKind.allCases)
  func `a notification of text/plain is found by the key and the payload in its JSON`(store: StoreKind)
    async throws
  {
    let route = [
      "caller": "{shared: true}", "key": "{from: ['json:/MessageId']}",
      "fingerprint": "{only: [/MessageId, /Message]}",
    ]
    try await Rig.run(Configuration(store: store, route: route)) { rig in
      func deliver(_ body: String) async throws -> ReceivedResponse {
        try await rig.semel.client.send(
          "POST", Self.hooks, [("Content-Type", "text/plain; charset=UTF-8")], body: body)
      }
      let first = try await deliver(Self.notification("m1", delivery: 1))
      expectExecuted(first)
      expectReplayed(try await deliver(Self.notification("m1", delivery: 2)), of: first)
      let changed = Self.notification("m1", delivery: 3).replacing(#"\"a\":1"#, with: #"\"a\":2"#)
      expectRefused(try await deliver(changed), 409, "payload_mismatch", retryable: false)
      expectExecuted(try await deliver(Self.notification("m2", delivery: 1)))
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a notification is its own key by the members that count`() async throws {
    let route = [
      "caller": "{shared: true}", "key": "{from: [payload]}", "fingerprint": "{only: [/MessageId]}",
    ]
    try await Rig.run(Configuration(route: route)) { rig in
      func deliver(_ id: String, _ delivery: Int) async throws -> ReceivedResponse {
        try await rig.semel.client.send(
          "POST", Self.hooks, [("Content-Type", "text/plain")],
          body: Self.notification(id, delivery: delivery))
      }
      let first = try await deliver("m1", 1)
      expectExecuted(first)
      expectReplayed(try await deliver("m1", 2), of: first)
      expectExecuted(try await deliver("m2", 3))
      #expect(rig.backend.requests.count == 2)
    }
  }

  /// An upload as clients make it: boundary and name of the temporary file are others in each delivery.
  private static func upload(_ delivery: Int, _ content: String) -> (type: String, body: String) {
    let boundary = "delivery-\(delivery)"
    let parts = [
      "Content-Disposition: form-data; name=\"sent_at\"\r\n\r\nT\(delivery)",
      "Content-Disposition: form-data; name=\"document\"; filename=\"tmp\(delivery).pdf\"\r\n"
        + "Content-Type: application/pdf\r\n\r\n\(content)",
    ]
    let body = parts.map { "--\(boundary)\r\n\($0)\r\n" }.joined() + "--\(boundary)--\r\n"
    return ("multipart/form-data; boundary=\(boundary)", body)
  }

  @Test(arguments: ["{ignore: ['form:sent_at', part-filename]}", "{ignore: ['part:sent_at', part-filename]}"])
  func `an upload is the same under another name of its file`(fingerprint: String) async throws {
    try await Rig.run(Configuration(route: ["fingerprint": fingerprint])) { rig in
      func send(_ delivery: Int, _ content: String) async throws -> ReceivedResponse {
        let (type, body) = Self.upload(delivery, content)
        return try await rig.semel.client.send(
          "POST", "/v1/uploads",
          [("Authorization", "a"), ("Idempotency-Key", "k"), ("Content-Type", type)], body: body)
      }
      let first = try await send(1, "PDF")
      expectExecuted(first)
      expectReplayed(try await send(2, "PDF"), of: first)
      expectRefused(try await send(3, "PDG"), 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `parameters of a query and fields of a form are left out, and a record keeps its recipe`()
    async throws
  {
    let route = ["fingerprint": "{ignore: ['query:t', 'form:nonce', '/items/*/at']}"]
    try await Rig.run(Configuration(route: route)) { rig in
      func send(_ query: String, _ body: String, _ type: String, key: String) async throws -> ReceivedResponse
      {
        try await rig.semel.client.send(
          "POST", "/v1/orders" + query,
          [("Authorization", "a"), ("Idempotency-Key", key), ("Content-Type", type)], body: body)
      }
      let form = "application/x-www-form-urlencoded"
      expectExecuted(try await send("?t=1&a=1", "nonce=1&b=1", form, key: "form"))
      expectReplayed(try await send("?a=1&t=2", "b=1&nonce=2", form, key: "form"), 201)
      expectRefused(
        try await send("?a=2&t=2", "b=1", form, key: "form"), 409, "payload_mismatch", retryable: false)
      let json = "application/json"
      expectExecuted(try await send("", #"{"items":[{"at":1},{"at":2,"n":1}]}"#, json, key: "json"))
      expectReplayed(try await send("", #"{"items":[{"at":3},{"n":1}]}"#, json, key: "json"), 201)
      // Other settings compare with the record by its own recipe.
      try await rig.reload { $0.route["fingerprint"] = "{only: [/id]}" }
      expectReplayed(try await send("", #"{"items":[{"at":4},{"n":1}]}"#, json, key: "json"), 201)
      expectRefused(
        try await send("", #"{"items":[{"at":4},{"n":2}]}"#, json, key: "json"), 409, "payload_mismatch",
        retryable: false)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `the parts that count are explained`() async throws {
    func explain(_ fingerprint: String, _ arguments: [String]) async throws -> String {
      let directory = TemporaryDirectory()
      try """
      upstreams: {orders: {url: "http://127.0.0.1:9000"}}
      routes: [{name: orders, match: {methods: [POST]}, caller: {shared: true}, fingerprint: \(fingerprint)}]
      """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
      let process = try ManagedProcess(
        [SemelProcess.binary, "explain", directory.file("semel.yaml"), "POST"] + arguments
          + ["-H", "Idempotency-Key: k"])
      #expect(try await process.exit() == .code(0), "\(process.output)\(process.errors)")
      return process.output
    }
    let plain = ["-H", "Content-Type: text/plain"]
    let only = try await explain(
      "{only: [/MessageId, /gone, 'query:id']}",
      ["http://orders.example/a?id=1"] + plain + ["-d", Self.notification("m", delivery: 1)])
    for expected in [
      "recipe 2;auto;o=/MessageId,/gone,query:id",
      "by its text, since members are named; its type is text/plain",
      "counts alone: /MessageId\n", "counts alone: /gone (not in this body)\n", "counts alone: query:id\n",
    ] {
      #expect(only.contains(expected), "\(expected) in \(only)")
    }
    let whole = try await explain(
      "{only: [/MessageId]}", ["http://orders.example/a"] + plain + ["-d", "hello"])
    #expect(
      whole.contains("the body's bytes, as a whole, since only names no part of a body of this kind"),
      "\(whole)")
    let ignore = try await explain(
      "{ignore: ['query:t', 'form:nonce']}",
      [
        "http://orders.example/a?a=1", "-H", "Content-Type: application/x-www-form-urlencoded", "-d",
        "nonce=1",
      ])
    #expect(
      ignore.contains("left out: query:t (not in this query)\n") && ignore.contains("left out: form:nonce\n"),
      "\(ignore)")
  }
}
