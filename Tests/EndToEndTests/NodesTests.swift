import TestSupport
import Testing

/// Two nodes on one Redis.
struct NodesTests {
  @Test func `eight duplicates of each of twenty keys run once each`() async throws {
    try await Rig.run(Configuration(store: .redis, route: ["lease": "30s", "wait_timeout": "30s"])) { rig in
      rig.backend.on("/v1/orders") { request in
        Reply(body: #"{"order":\#(request.number)}"#, delay: .milliseconds(100))
      }
      let other = try await rig.secondNode()
      let nodes = [rig.semel, other]
      let start = ContinuousClock.now
      let responses = try await withThrowingTaskGroup(of: (String, ReceivedResponse).self) { group in
        for delivery in 0..<8 {
          for number in 0..<20 {
            group.addTask { ("k\(number)", try await rig.order("k\(number)", at: nodes[delivery % 2])) }
          }
        }
        return try await group.reduce(into: [String: [ReceivedResponse]]()) {
          $0[$1.0, default: []].append($1.1)
        }
      }
      // Woken by push: nobody waits for a lease or a time-out of half a minute to pass.
      #expect(ContinuousClock.now - start < .seconds(15))
      for (key, responses) in responses {
        #expect(rig.backend.runs(of: key) == 1)
        #expect(responses.count == 8)
        #expect(responses.count { $0.idempotencyStatus == "executed" } == 1)
        #expect(responses.count { $0.idempotencyStatus == "replayed" } == 7, "\(responses.map(\.text))")
        #expect(Set(responses.map(\.text)).count == 1)
      }
      try await other.kill()
    }
  }

  @Test func `one node replays the outcome of another`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      let other = try await rig.secondNode()
      let first = try await rig.order("k")
      expectReplayed(try await rig.order("k", at: other), of: first)
      expectRefused(
        try await rig.order("k", body: "{}", at: other), 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.count == 1)
      try await other.kill()
    }
  }

  @Test func `one of two nodes counts the open records for both`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      func countedAt(_ node: SemelProcess) async throws -> String? {
        let name = "semel_open_records_counted_timestamp_seconds "
        let page = try await node.admin.send("GET", "/metrics").text
        return page.split(separator: "\n").first { $0.hasPrefix(name) }.map {
          String($0.dropFirst(name.count))
        }
      }
      func firstCount(of node: SemelProcess) async throws -> String {
        while true {
          if let time = try await countedAt(node), Double(time) ?? 0 > 0 { return time }
          try await Task.sleep(for: .milliseconds(10))
        }
      }
      let first = try await firstCount(of: rig.semel)
      let other = try await rig.secondNode()
      #expect(try await firstCount(of: other) == first)
      try await other.kill()
    }
  }

  @Test func `a duplicate on another node is woken when the first ends`() async throws {
    try await Rig.run(Configuration(store: .redis, route: ["lease": "60s", "wait_timeout": "60s"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let other = try await rig.secondNode()
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let waiting = try await RawClient(port: other.ports.proxy)
      try await waiting.send(Rig.orderText("k"))
      expectRefused(
        try await rig.order("k", [("Prefer", "wait=1")], at: other), 409, "in_flight", retryable: true)
      let start = ContinuousClock.now
      gate.open()
      expectReplayed(try await waiting.response(), 201)
      #expect(ContinuousClock.now - start < .seconds(10))
      expectExecuted(try await first)
      try await other.kill()
    }
  }

  @Test func `a duplicate on another node is woken although the store went away meanwhile`() async throws {
    let configuration = Configuration(
      store: .redis, route: ["lease": "60s", "wait_timeout": "60s"], isAppendOnly: true)
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let other = try await rig.secondNode()
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let waiting = try await RawClient(port: other.ports.proxy)
      try await waiting.send(Rig.orderText("k"))
      expectRefused(
        try await rig.order("k", [("Prefer", "wait=1")], at: other), 409, "in_flight", retryable: true)
      try await rig.redis?.restart()
      gate.open()
      #expect(try await first.status == 201)
      let start = ContinuousClock.now
      expectReplayed(try await waiting.response(), 201)
      #expect(ContinuousClock.now - start < .seconds(15))
      #expect(rig.backend.requests.count == 1)
      try await other.kill()
    }
  }

  @Test func `a duplicate outlives the node that ran the first`() async throws {
    try await Rig.run(Configuration(store: .redis, route: ["wait_timeout": "60s"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let other = try await rig.secondNode()
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      let waiting = try await RawClient(port: other.ports.proxy)
      try await waiting.send(Rig.orderText("k"))
      expectRefused(
        try await rig.order("k", [("Prefer", "wait=0")], at: other), 409, "in_flight", retryable: true)
      try await rig.semel.kill()
      let start = ContinuousClock.now
      let response = try await waiting.response()
      #expect(response.problem?.code == "outcome_unknown")
      #expect(ContinuousClock.now - start < .seconds(15))
      #expect(rig.backend.requests.count == 1)
      gate.open()
      try await other.kill()
    }
  }
}
