import TestSupport
import Testing

/// The memory for bodies: what is counted, and what becomes of that for which there is none.
struct BodyMemoryTests {
  private static let body = String(repeating: "x", count: 700 << 10)

  @Test func `a stalled upload blocks no other upload`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{body_memory: 1MiB}", "workers": "1"])) { rig in
      let idle = try await RawClient(port: rig.semel.ports.proxy)
      let fields = Rig.fields(key: "idle") + [("Transfer-Encoding", "chunked")]
      try await idle.send(HTTPClient.request("POST", "/v1/orders", fields) + "1\r\nx\r\n")
      expectExecuted(try await rig.order("other", body: Self.body))
    }
  }

  @Test func `bodies that arrive with their heads count`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{body_memory: 1MiB}", "workers": "1"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let body = String(repeating: "x", count: 30 << 10)
      let responses = try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for number in 0..<50 { group.addTask { try await rig.order("k\(number)", body: body) } }
        // A quarter of the memory is for captured responses.
        _ = try await rig.backend.arrived(20)
        let held = try await rig.semel.counter("semel_body_bytes")
        #expect(held > 20 * body.utf8.count - (200 << 10) && held <= 784 << 10)
        // Those that come once memory is free again run.
        try await rig.semel.counter("semel_refusals_total", isAtLeast: 10)
        gate.open()
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let refused = responses.filter { $0.status == 503 }
      #expect(refused.count >= 10)
      for response in refused { expectRefused(response, 503, "overloaded", retryable: true) }
      #expect(responses.count { $0.status == 201 } == 50 - refused.count)
      #expect(rig.backend.requests.count == 50 - refused.count)
      try await rig.semel.counter("semel_body_bytes", becomes: 0)
    }
  }

  @Test func `a connection holds at most an eighth of the memory`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{body_memory: 4MiB}", "workers": "1"])) { rig in
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        [
          ["open", 1, HTTP2Script.order("one"), false], ["upload", 1, .number(400 << 10)],
          ["open", 3, HTTP2Script.order("two"), false], ["upload", 3, .number(400 << 10)], ["response", 3],
          ["note", "full"], ["data", 1, "", true], ["response", 1],
        ])
      try await script.says("full")
      expectExecuted(try await rig.order("other", body: Self.body))
      let report = try await script.report()
      #expect(try report[3].status == 503)
      #expect(try report[1].status == 201)
      #expect(rig.backend.requests.count == 2)
    }
  }

  /// The order that `HTTP2Script.order` places, by HTTP/1.1.
  private static func sameOrder(_ rig: Rig, _ key: String) async throws -> ReceivedResponse {
    let client = try await RawClient(port: rig.semel.ports.proxy)
    try await client.send(
      "POST /v1/orders HTTP/1.1\r\nHost: orders.example\r\nAuthorization: Bearer alice\r\n"
        + "Idempotency-Key: \(key)\r\n\r\n")
    return try await client.response()
  }

  /// Streams on which nothing but heads can leave.
  private static func deafSteps(_ keys: [String]) -> [[HTTP2Script.Argument]] {
    let opened = keys.enumerated().map { index, key -> [HTTP2Script.Argument] in
      ["open", .number(2 * index + 1), HTTP2Script.order(key), true]
    }
    let heads = keys.indices.map { index -> [HTTP2Script.Argument] in ["head", .number(2 * index + 1)] }
    return [["shut_windows"]] + opened + heads
  }

  @Test func `a recorded response that many read slowly is held once`() async throws {
    let configuration = Configuration(top: [
      "limits": "{body_memory: 16MiB, write_timeout: 60s}", "workers": "2",
    ])
    try await Rig.run(configuration) { rig in
      let size = 1 << 20
      rig.backend.on("/v1/orders") { _ in Reply(201, [], content: .filler(size)) }
      #expect(try await Self.sameOrder(rig, "k").body.count == size)
      let before = try rig.semel.memory("VmRSS")
      let steps = Self.deafSteps(Array(repeating: "k", count: 50)) + [["note", "waiting"], ["pause", 60]]
      let scripts = try (0..<4).map { _ in try HTTP2Script(port: rig.semel.ports.proxy, steps) }
      for script in scripts { try await script.says("waiting") }
      // Once for each event loop.
      let held = try await rig.semel.counter("semel_body_bytes")
      // And a few KiB for each stream.
      #expect(held >= size && held <= 2 * size + 200 * (5 << 10))
      #expect(try rig.semel.memory("VmRSS") - before < 48 << 10)
      #expect(try await Self.sameOrder(rig, "k").body.count == size)
      for script in scripts { try await script.kill() }
      try await rig.semel.counter("semel_body_bytes", becomes: 0)
      #expect(rig.backend.requests.count == 1)
    }
  }

  /// In KiB: far less than what passes, and more than a debug build's own memory grows meanwhile.
  static let maxGrowth = 12 << 10

  @Test func `what a client has sent is not kept, wherever its packets end`() async throws {
    try await Rig.run(Configuration(top: ["workers": "1"])) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      // Without a key it is refused at once, so that nothing is under way when the next bytes come.
      let pad = [("X-Pad", String(repeating: "x", count: 4000))]
      let request = HTTPClient.request(
        "POST", "/v1/orders", Rig.fields(key: nil) + pad + [("Content-Length", "0")])
      let cut = request.index(request.startIndex, offsetBy: 2000)
      try await client.send(String(request[..<cut]))
      var before: Int?
      for _ in 0..<160 {
        // Each write ends within a head.
        let rest = String(request[cut...])
        try await client.send(rest + String(repeating: request, count: 63) + request[..<cut])
        for _ in 0..<64 { expectRefused(try await client.response(), 400, "key_missing", retryable: false) }
        if before == nil { before = try rig.semel.memory("VmRSS") }
      }
      let growth = try rig.semel.memory("VmRSS") - (before ?? 0)
      #expect(growth < Self.maxGrowth, "\(growth) KiB for \(160 * 64 * request.utf8.count >> 10) KiB")
    }
  }

  @Test func `what a backend has sent is not kept, wherever its packets end`() async throws {
    let hints = "HTTP/1.1 103 Early Hints\r\nX-Pad: \(String(repeating: "x", count: 4000))\r\n\r\n"
    let isBegun = Watched(false)
    let mayGoOn = ScriptGate()
    let backend = try RawServer { connection in
      try connection.readHead()
      let cut = hints.index(hints.startIndex, offsetBy: 2000)
      try connection.write(hints + hints[..<cut])
      isBegun.withValue { $0 = true }
      mayGoOn.pass()
      for _ in 0..<160 {
        try connection.write(hints[cut...] + String(repeating: hints, count: 63) + hints[..<cut])
      }
      try connection.write(hints[cut...] + "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
      connection.readToEnd()
    }
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      async let order = rig.order("k")
      try await isBegun.until("the backend to begin") { $0 ? true : nil }
      let before = try rig.semel.memory("VmRSS")
      mayGoOn.open()
      expectExecuted(try await order)
      // The connection is kept, and with it all that its buffer holds.
      let growth = try rig.semel.memory("VmRSS") - before
      #expect(growth < Self.maxGrowth, "\(growth) KiB for \(160 * 64 * hints.utf8.count >> 10) KiB")
    }
  }

  @Test func `sending the head does not count as progress of the body`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{write_timeout: 8s}"])) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, [], content: .filler(100 << 10)) }
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy, Self.deafSteps(["k"]) + [["note", "head"], ["was_reset", 1]])
      try await script.says("head")
      let start = ContinuousClock.now
      let report = try await script.report()
      // CANCEL
      #expect(try report[1].reset == 8 && report[1].length == 0)
      #expect(ContinuousClock.now - start < .seconds(15))
      try await rig.semel.counter("semel_slow_readers_total", becomes: 1)
    }
  }

  @Test func `different responses that wait on one connection are reset beyond its share`() async throws {
    let configuration = Configuration(top: [
      "limits": "{body_memory: 4MiB, write_timeout: 60s}", "workers": "1",
    ])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, [], content: .filler(200 << 10)) }
      let keys = (0..<6).map { "k\($0)" }
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        Self.deafSteps(keys) + [["resets", 4], ["note", "waiting"], ["pause", 1]])
      try await script.says("waiting")
      #expect(try await rig.semel.counter("semel_body_bytes") <= 512 << 10)
      let report = try await script.report()
      // ENHANCE_YOUR_CALM; the outcome stays recorded.
      let reset = report.streams.values.filter { $0.reset == 11 }
      #expect(reset.count == 4)
      for key in keys {
        let response = try await Self.sameOrder(rig, key)
        #expect(response.status == 201 && response.body.count == 200 << 10)
      }
      #expect(rig.backend.requests.count == 6)
    }
  }

  /// Twelve recorded responses of four megabytes, with room for six of them to wait for their clients.
  private static func withLargeRecords(
    _ body: @escaping @Sendable (Rig, _ keys: [String], _ size: Int) async throws -> Void
  ) async throws {
    // Large responses take a busy machine's store longer than its usual limit.
    let configuration = Configuration(
      top: ["limits": "{body_memory: 32MiB, write_timeout: 60s}", "workers": "2"],
      storeMembers: ["timeout": "9s"], route: ["lease": "30s", "max_response_body": "6MiB"])
    try await Rig.run(configuration) { rig in
      // The kernel takes up to four mebibytes of each response.
      let (keys, size) = ((0..<20).map { "k\($0)" }, 6 << 20)
      rig.backend.on("/v1/orders") { _ in Reply(201, [], content: .filler(size)) }
      for key in keys { #expect(try await sameOrder(rig, key).body.count == size) }
      try await body(rig, keys, size)
      #expect(try await rig.semel.counter("semel_slow_readers_total") == 0)
      for key in keys { expectReplayed(try await sameOrder(rig, key), 201) }
      #expect(rig.backend.requests.count == keys.count)
      try await rig.semel.counter("semel_body_bytes", becomes: 0)
    }
  }

  @Test func `a replay for which there is no memory is refused before it has begun`() async throws {
    try await Self.withLargeRecords { rig, keys, size in
      var clients: [RawClient] = []
      for key in keys {
        let client = try await RawClient(port: rig.semel.ports.proxy, receiveBuffer: 64 << 10)
        try await client.setReading(false)
        try await client.send(
          "POST /v1/orders HTTP/1.1\r\nHost: orders.example\r\nAuthorization: Bearer alice\r\n"
            + "Idempotency-Key: \(key)\r\n\r\n")
        clients.append(client)
      }
      try await rig.semel.counter("semel_requests_total", isAtLeast: 2 * keys.count)
      var refused = 0
      for client in clients {
        try await client.setReading(true)
        let response = try await client.response()
        if response.problem?.code == "overloaded" {
          refused += 1
        } else {
          #expect(response.body.count == size)
        }
        try await client.close()
      }
      #expect(refused > 0 && refused < keys.count)
    }
  }

  @Test func `a replay beyond its connection's share is refused before it has begun`() async throws {
    try await Self.withLargeRecords { rig, keys, _ in
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy, Self.deafSteps(keys) + [["note", "heads"], ["pause", 1]])
      try await script.says("heads")
      let report = try await script.report()
      #expect(report.streams.values.allSatisfy { $0.reset == nil })
      #expect(
        report.streams.values.map(\.status).sorted() == [201] + Array(repeating: 503, count: keys.count - 1))
    }
  }

  @Test func `clients of HTTP 1 that read slowly share a recorded response as well`() async throws {
    // Twelve megabytes take a busy machine's store longer than its usual limit.
    let configuration = Configuration(
      top: ["limits": "{body_memory: 64MiB, write_timeout: 60s}", "workers": "1"],
      storeMembers: ["timeout": "9s"], route: ["lease": "30s", "max_response_body": "16MiB"])
    try await Rig.run(configuration) { rig in
      let size = 12 << 20
      rig.backend.on("/v1/orders") { _ in Reply(201, [], content: .filler(size)) }
      #expect(try await rig.order("k").body.count == size)
      var clients: [RawClient] = []
      for _ in 0..<8 {
        let client = try await RawClient(port: rig.semel.ports.proxy, receiveBuffer: 64 << 10)
        try await client.setReading(false)
        try await client.send(Rig.orderText("k"))
        clients.append(client)
      }
      try await rig.semel.counter("semel_replays_total", isAtLeast: 8)
      let held = try await rig.semel.counter("semel_body_bytes")
      #expect(held >= size && held <= size + (8 * 256 << 10))
      let client = try #require(clients.first)
      try await client.setReading(true)
      let response = try await client.response()
      #expect(response.body.count == size && response.body.allSatisfy { $0 == UInt8(ascii: "x") })
      #expect(response.idempotencyStatus == "replayed")
      for client in clients { try await client.close() }
      try await rig.semel.counter("semel_body_bytes", becomes: 0)
      #expect(try await rig.semel.counter("semel_slow_readers_total") == 0)
    }
  }

  @Test func `a capture that finds no memory is streamed, and its outcome is recorded`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{body_memory: 1MiB}", "workers": "1"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/large") { _ in Reply(201, [("Location", "/7")], content: .filler(600 << 10)) }
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("first", body: String(repeating: "x", count: 300 << 10))
      try await rig.backend.arrived(1)
      let large = try await rig.order("large", path: "/v1/large")
      #expect(large.status == 201 && large.body.count == 600 << 10)
      #expect(large.idempotencyStatus == "executed; kept=no")
      let again = try await rig.order("large", path: "/v1/large")
      expectRefused(again, 409, "response_not_kept", retryable: false)
      gate.open()
      expectExecuted(try await first)
      #expect(rig.backend.requests.count == 2)
    }
  }

  /// The ways in which strangers fill the memory.
  enum Load: String, CaseIterable, Sendable {
    case uploads, slowReaders

    func begin(_ rig: Rig) async throws -> [any Sendable] {
      switch self {
      case .uploads: try await Self.upload(rig)
      case .slowReaders: try await Self.leaveUnread(rig)
      }
    }

    /// Bodies that do not end, until no more is taken.
    private static func upload(_ rig: Rig) async throws -> [any Sendable] {
      var clients: [RawClient] = []
      let piece = String(repeating: "x", count: 64 << 10)
      for number in 0..<24 {
        let client = try await RawClient(port: rig.semel.ports.proxy, receiveBuffer: 64 << 10)
        let fields =
          Rig.fields(key: "u\(number)", caller: "Bearer mallory") + [("Transfer-Encoding", "chunked")]
        try await client.send(HTTPClient.request("POST", "/v1/orders", fields))
        for _ in 0..<6 { try? await client.send("10000\r\n\(piece)\r\n") }
        clients.append(client)
      }
      return clients
    }

    /// Different responses of which nothing is read.
    private static func leaveUnread(_ rig: Rig) async throws -> [any Sendable] {
      rig.backend.on("/v1/orders") { _ in Reply(201, [], content: .filler(200 << 10)) }
      var scripts: [HTTP2Script] = []
      for number in 0..<10 {
        let keys = (0..<5).map { "s\(number)-\($0)" }
        let script = try HTTP2Script(
          port: rig.semel.ports.proxy,
          [["shut_windows"]]
            + keys.enumerated().map {
              ["open", .number(2 * $0.offset + 1), HTTP2Script.order($0.element), true]
            }
            + [["note", "open"], ["pause", 60]])
        try await script.says("open")
        scripts.append(script)
      }
      return scripts
    }
  }

  @Test(arguments: StoreKind.allCases, Load.allCases)
  func `a claimed request's response is recorded however full the memory is of others' bodies`(
    store: StoreKind, load: Load
  ) async throws {
    let configuration = Configuration(
      store: store, top: ["limits": "{body_memory: 8MiB, write_timeout: 60s}", "workers": "1"])
    try await Rig.run(configuration) { rig in
      let size = 300 << 10
      let gate = Gate()
      rig.backend.on("/v1/large") { _ in
        var reply = Reply(201, [("Location", "/7")], content: .filler(size))
        reply.gate = gate
        return reply
      }
      // Claimed before the memory is full.
      let requests = (0..<4).map { number in Task { try await rig.order("large\(number)", path: "/v1/large") }
      }
      try await rig.backend.arrived(4)
      let holders = try await load.begin(rig)
      try await rig.semel.counter("semel_body_bytes", isAtLeast: 5 << 20)
      let held = try await rig.semel.counter("semel_body_bytes")
      // A quarter is for captures, and what is always let through (a piece for each client) comes out of it, too.
      #expect(held <= 8 << 20)
      gate.open()
      // The response may find no room to wait for its client; it is recorded all the same.
      for request in requests { _ = try? await request.value }
      withExtendedLifetime(holders) {}
      for script in holders.compactMap({ $0 as? HTTP2Script }) { try await script.kill() }
      for client in holders.compactMap({ $0 as? RawClient }) { try await client.close() }
      for number in 0..<4 {
        var replay = try await rig.order("large\(number)", path: "/v1/large")
        while replay.problem?.code == "overloaded" {
          replay = try await rig.order("large\(number)", path: "/v1/large")
        }
        expectReplayed(replay, 201)
        #expect(replay.body.count == size)
      }
      #expect(rig.backend.requests.count { $0.path == "/v1/large" } == 4)
      try await rig.semel.counter("semel_body_bytes", becomes: 0)
    }
  }
}
