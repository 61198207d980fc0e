import TestSupport
import Testing

/// The backend may have run a request and nobody knows: it is never guessed.
struct UnknownTests {
  /// The backend's behaviour after it has run a request.
  enum Loss: String, CaseIterable, Sendable {
    case unanswered, reset, unfinishedChunks, garbage

    var reply: Reply {
      switch self {
      case .unanswered: .unanswered
      case .reset: Reply(201, body: "0123456789", ending: .reset(after: 5))
      case .unfinishedChunks: Reply(201, body: "0123456789", framing: .chunked, ending: .reset(after: 5))
      case .garbage: Reply(201, body: "x", before: "220 mail.example ESMTP\r\n\r\n")
      }
    }
  }

  @Test(arguments: StoreKind.allCases, Loss.allCases)
  func `a lost response is reported as unknown, and the request is not run again`(
    store: StoreKind, loss: Loss
  ) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { _ in loss.reply }
      let first = try await rig.order("k")
      // The connection has ended, so that no late response can settle it.
      expectRefused(first, 502, "outcome_unknown", retryable: false)
      for _ in 0..<3 {
        let again = try await rig.order("k")
        expectRefused(again, 409, "outcome_unknown", retryable: false)
        #expect(again["Retry-After"] == nil)
      }
      #expect(rig.backend.requests.count == 1)
      #expect(rig.backend.log.value.begun == 1)
    }
  }

  /// libcurl sends again by itself when a connection that it used before dies without a response.
  @Test(arguments: [#"{"amount":1}"#, nil], ["POST", "DELETE", "PUT", "GET"])
  func `nothing is sent twice when a reused connection dies`(body: String?, method: String) async throws {
    // One event loop, so that the second request finds the first one's connection.
    try await Rig.run(Configuration(top: ["workers": "1"])) { rig in
      rig.backend.on("/v1/lost") { _ in .unanswered }
      for number in 1...5 {
        expectExecuted(try await rig.order("warm\(number)"))
        let warm = rig.backend.requests.last?.connection
        let lost = try await rig.semel.client.send(
          method, "/v1/lost", Rig.fields(key: "k\(number)"), body: body)
        expectRefused(lost, 502, "outcome_unknown", retryable: false)
        let runs = rig.backend.requests.filter { $0["Idempotency-Key"] == "k\(number)" }
        #expect(runs.map(\.connection) == [warm])
      }
      #expect(rig.backend.log.value.begun == 10)
    }
  }

  @Test func `after settle the unknown outcome is final`() async throws {
    try await Rig.run(Configuration(upstream: ["settle": "1s"])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: false)
      let held = try await rig.order("k") { $0.problem?.retryable == false }
      expectRefused(held, 409, "outcome_unknown", retryable: false)
      #expect(held["Retry-After"] == nil)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `with on_unknown: retry, the next delivery after settle runs`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, upstream: ["settle": "4s"], route: ["on_unknown": "retry"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders", inTurn: [.unanswered, Reply(201, body: "second")])
      let start = ContinuousClock.now
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: true)
      let held = try await rig.order("k")
      expectRefused(held, 409, "outcome_unknown", retryable: true)
      expectRetryAfter(held)
      let second = try await rig.order("k") { $0.status == 201 }
      expectExecuted(second)
      #expect(ContinuousClock.now - start >= .milliseconds(3950))
      expectReplayed(try await rig.order("k"), of: second)
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
      #expect(Set(rig.backend.requests.map(\.requestID)).count == 1)
    }
  }

  @Test(arguments: [409, 412])
  func `a conflict after an unknown attempt is an unknown outcome`(status: Int) async throws {
    let configuration = Configuration(upstream: ["settle": "1s"], route: ["on_unknown": "retry"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders", inTurn: [.unanswered, Reply(status, body: "exists")])
      _ = try await rig.order("k")
      let second = try await rig.order("k") { $0.text == "exists" }
      #expect(second.status == status)
      #expect(second.idempotencyStatus == "unknown")
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a late response is recorded within settle`(store: StoreKind) async throws {
    let upstream = ["response_timeout": "500ms", "settle": "60s"]
    try await Rig.run(Configuration(store: store, upstream: upstream)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(201, body: "late", gate: gate) }
      expectRefused(try await rig.order("k"), 504, "outcome_unknown", retryable: true)
      // Its entry does not wait for what may come.
      try await rig.semel.process.line(containing: #""status":504,"outcome":"refused""#)
      let meanwhile = try await rig.order("k", [("Prefer", "wait=0")])
      #expect(meanwhile.status == 409)
      #expect(meanwhile.problem?.retryable == true)
      gate.open()
      let replay = try await rig.order("k") { $0.status == 201 }
      expectReplayed(replay, 201)
      #expect(replay.text == "late")
      #expect(rig.backend.requests.count == 1)
    }
  }

  /// The store stands still from before the late response until it has failed, which is after `settle`: claims that
  /// were sent meanwhile may take the record over, as it seemed when they were sent.
  @Test func `no retry runs while the late response waits for the store`() async throws {
    let configuration = Configuration(
      upstream: ["response_timeout": "500ms", "settle": "9s"], storeMembers: ["timeout": "4s"],
      route: ["on_unknown": "retry", "lease": "10s", "duplicates": "reject"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(201, body: "late", gate: gate) }
      expectRefused(try await rig.order("k"), 504, "outcome_unknown", retryable: true)
      let loss = ContinuousClock.now
      let holder = try await rig.lockStore()
      // Late enough that the write fails only after `settle`.
      try await Task.sleep(until: loss + .milliseconds(5500))
      gate.open()
      var retries: [Task<ReceivedResponse, any Error>] = []
      while try await rig.semel.counter("semel_store_errors_total") == 0 {
        retries.append(Task { try await rig.order("k") })
        try await Task.sleep(for: .milliseconds(20))
      }
      try await holder.kill()
      for retry in retries {
        let response = try await retry.value
        #expect(response.text == "late" || response.problem?.retryable == true, "\(response.text)")
      }
      #expect(try await rig.order("k") { $0.status == 201 }.text == "late")
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a time-out may be the route's own`() async throws {
    let configuration = Configuration(upstream: ["settle": "1s"], route: ["response_timeout": "300ms"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      expectRefused(try await rig.order("k"), 504, "outcome_unknown", retryable: true)
      let held = try await rig.order("k") { $0.problem?.retryable == false }
      expectRefused(held, 409, "outcome_unknown", retryable: false)
      gate.open()
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a lost response to a request that is passed through is unknown, and no record knows of it`()
    async throws
  {
    try await Rig.run(Configuration(upstream: ["response_timeout": "500ms"])) { rig in
      let gate = Gate()
      rig.backend.on("/open", inTurn: [.unanswered, Reply(gate: gate), Reply(201)])
      for status in [502, 504] {
        let lost = try await rig.order(nil, path: "/open")
        expectRefused(lost, status, "outcome_unknown", retryable: false)
        #expect(lost["Retry-After"] == nil)
      }
      #expect(rig.backend.log.value.begun == 2)
      #expect(try await rig.order(nil, path: "/open").status == 201)
      gate.open()
    }
  }

  @Test func `a complete response counts although the request was not read`() async throws {
    try await Rig.run { rig in
      // The backend responds at the head, and its client must stop sending (a megabyte does not fit the socket).
      rig.backend.onHead("/v1/orders") { _ in Reply(422, body: "no") }
      let first = try await rig.order("k", body: String(repeating: "x", count: 1 << 20))
      expectExecuted(first, 422)
      expectReplayed(try await rig.order("k", body: String(repeating: "x", count: 1 << 20)), of: first)
    }
  }

  @Test func `interim responses are skipped`() async throws {
    try await Rig.run { rig in
      let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
      rig.backend.on("/v1/orders") { _ in Reply(201, body: "done", before: interim) }
      let first = try await rig.order("k")
      expectExecuted(first)
      #expect(first.text == "done")
      expectReplayed(try await rig.order("k"), of: first)
    }
  }
}
