import TestSupport
import Testing

/// The ageing of records.
struct RetentionTests {
  @Test(arguments: StoreKind.allCases)
  func `past its retention a key is remembered and refused`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["retention": "1s", "remember": "1h"])) { rig in
      let first = try await rig.order("k")
      expectExecuted(first)
      let expired = try await rig.order("k") { $0.idempotencyStatus != "replayed" }
      expectRefused(expired, 409, "key_expired", retryable: false)
      let other = try await rig.order("k", body: "{}")
      expectRefused(other, 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a key that is no longer remembered is new`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["retention": "4s", "remember": "4s"])) { rig in
      expectExecuted(try await rig.order("k"))
      expectReplayed(try await rig.order("k"), 201)
      // In the very millisecond in which it ends, Redis may still have it.
      expectExecuted(try await rig.order("k") { $0.idempotencyStatus == "executed" })
      #expect(rig.backend.requests.map(\.attempt) == ["1", "1"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an unknown outcome ages to a tombstone`(store: StoreKind) async throws {
    let route = ["retention": "1s", "remember": "1h", "unknown_retention": "2s"]
    try await Rig.run(Configuration(store: store, upstream: ["settle": "1s"], route: route)) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: false)
      let aged = try await rig.order("k") { $0.problem?.code != "outcome_unknown" }
      expectRefused(aged, 409, "key_expired", retryable: false)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a response that is too large to keep is streamed and not forgotten`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["max_response_body": "64KiB"])) { rig in
      for framing in [Reply.Framing.length, .chunked] {
        let key = "k\(framing)"
        rig.backend.on("/v1/orders") { _ in
          Reply(201, [("Location", "/v1/orders/17")], content: .filler(300_000), framing: framing)
        }
        let first = try await rig.order(key)
        expectExecuted(first, isKept: false)
        #expect(first.body.count == 300_000)
        let again = try await rig.order(key)
        expectRefused(again, 409, "response_not_kept", retryable: false)
        #expect(again.problem?.originalStatus == 201)
        #expect(again.problem?.location == "/v1/orders/17")
        #expect(rig.backend.runs(of: key) == 1)
      }
    }
  }

  @Test func `a response of exactly the limit is kept`() async throws {
    try await Rig.run(Configuration(route: ["max_response_body": "64KiB"])) { rig in
      for framing in [Reply.Framing.length, .chunked] {
        rig.backend.on("/v1/orders") { _ in Reply(200, [], content: .filler(65536), framing: framing) }
        let first = try await rig.order("k\(framing)")
        expectExecuted(first, 200)
        expectReplayed(try await rig.order("k\(framing)"), of: first)
      }
    }
  }

  @Test func `a large response that is cut cuts the client's connection`() async throws {
    try await Rig.run(Configuration(route: ["max_response_body": "64KiB"])) { rig in
      for framing in [Reply.Framing.length, .chunked] {
        let key = "k\(framing)"
        rig.backend.on("/v1/orders") { _ in
          Reply(201, [], content: .filler(300_000), framing: framing, ending: .cut(after: 200_000))
        }
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        try await connection.send(Rig.orderText(key))
        let bytes = try await connection.closedByPeer()
        if case .whole = ReceivedResponse.parse(bytes, to: "POST", isClosed: true) {
          Issue.record("a cut response looks whole")
        }
        // The backend has ended it in good order.
        let again = try await rig.order(key)
        expectRefused(again, 409, "response_not_kept", retryable: false)
        #expect(again.problem?.originalStatus == 201)
        #expect(rig.backend.runs(of: key) == 1)
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a response that only its connection's end delimits is passed on and not kept`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { _ in
        Reply(200, [("Location", "/v1/orders/9")], content: .filler(5000), framing: .close)
      }
      let first = try await rig.order("k")
      expectExecuted(first, 200, isKept: false)
      #expect(first.body.count == 5000)
      let again = try await rig.order("k")
      expectRefused(again, 409, "response_not_kept", retryable: false)
      #expect(again.problem?.originalStatus == 200)
      #expect(again.problem?.location == "/v1/orders/9")
      #expect(rig.backend.requests.count == 1)
    }
  }
}
