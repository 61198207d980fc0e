import TestSupport
import Testing

/// Responses without an end in sight: each piece reaches the client before the next one is made.
struct EventStreamTests {
  /// Responds to each request with a head and an event, then one more event for each pass of the gate, three in all,
  /// and after one more pass with the end.
  private func backend(_ gate: ScriptGate, _ framing: Framing = .chunked) throws -> RawServer {
    try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\(framing.line)\r\n\r\n")
      for number in 1...3 {
        let event = "data: \(number)\n\n"
        try connection.write(framing == .chunked ? "9\r\n\(event)\r\n" : event)
        gate.pass()
      }
      if framing == .chunked { try connection.write("0\r\n\r\n") } else { try connection.write("!") }
      connection.readToEnd()
    }
  }

  enum Framing: Sendable {
    case chunked, length

    var line: String { self == .chunked ? "Transfer-Encoding: chunked" : "Content-Length: 28" }
    var body: String { "data: 1\n\ndata: 2\n\ndata: 3\n\n" + (self == .chunked ? "" : "!") }
  }

  private func configuration(
    _ backend: RawServer, store: StoreKind = .embedded, _ route: [String: String] = [:]
  ) -> Configuration {
    Configuration(
      store: store, upstream: ["url": "'http://127.0.0.1:\(backend.port)'"],
      storeMembers: store == .redis ? ["timeout": "9s"] : [:],
      route: ["stream": "true", "lease": "30s"].merging(route) { _, own in own })
  }

  @Test(arguments: ["/v1/events", "/events"], [Framing.chunked, .length])
  func `each event reaches the client before the next one is sent`(path: String, framing: Framing)
    async throws
  {
    let gate = ScriptGate()
    let backend = try backend(gate, framing)
    try await Rig.run(configuration(backend)) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText(path == "/events" ? nil : "k", path: path))
      for number in 1...3 {
        try await client.inbox.until("event \(number)") { $0.bytes.has("data: \(number)\n\n") }
        gate.open()
      }
      let response = try await client.response()
      #expect(response.text == framing.body)
      guard path != "/events" else { return }
      expectExecuted(response, 200)
      expectReplayed(try await rig.order("k", path: path), of: response)
      #expect(backend.tally.requests == 1)
    }
  }

  @Test func `HTTP 1.0 gets each event as well, and the connection's end as that of the response`()
    async throws
  {
    let gate = ScriptGate()
    let backend = try backend(gate)
    try await Rig.run(configuration(backend)) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send("GET /events HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n")
      for number in 1...3 {
        try await client.inbox.until("event \(number)") { $0.bytes.has("data: \(number)\n\n") }
        #expect(!client.inbox.value.isClosed)
        gate.open()
      }
      try await client.closedByPeer()
      let response = try await client.response(to: "GET")
      #expect(response.text == Framing.chunked.body)
      #expect(response["Connection"] == "close")
      #expect(response["Transfer-Encoding"] == nil && response["Content-Length"] == nil)
    }
  }

  @Test(arguments: ["/v1/events", "/events"])
  func `each event over HTTP 2 reaches the client before the next one is sent`(path: String) async throws {
    let gate = ScriptGate()
    let backend = try backend(gate)
    try await Rig.run(configuration(backend)) { rig in
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        [
          ["open", 1, HTTP2Script.order("k", path: path), true], ["bytes", 1, 9], ["note", "one"],
          ["bytes", 1, 18], ["note", "two"], ["bytes", 1, 27], ["note", "three"], ["response", 1],
        ])
      for word in ["one", "two", "three"] {
        try await script.says(word)
        gate.open()
      }
      #expect(try await script.report()[1].body == Framing.chunked.body)
    }
  }

  @Test(arguments: [Framing.chunked, .length])
  func `the end of a protected stream waits for the store`(framing: Framing) async throws {
    let gate = ScriptGate()
    let backend = try backend(gate, framing)
    try await Rig.run(configuration(backend, store: .redis)) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k"))
      for number in 1...3 {
        try await client.inbox.until("event \(number)") { $0.bytes.has("data: \(number)\n\n") }
        if number == 3 { rig.redis?.freeze() }
        gate.open()
      }
      // Whatever would come does so within this.
      try await Task.sleep(for: .seconds(1))
      let inbox = client.inbox.value
      #expect(!inbox.isClosed)
      guard case .incomplete = ReceivedResponse.parse(inbox.bytes, to: "POST", isClosed: false) else {
        Issue.record("the response is whole: \(String(decoding: inbox.bytes, as: UTF8.self))")
        return
      }
      rig.redis?.thaw()
      let response = try await client.response()
      #expect(response.text == framing.body)
      expectReplayed(try await rig.order("k"), of: response)
    }
  }

  @Test(arguments: [204, 200, 304])
  func `a response without a body waits for the store`(status: Int) async throws {
    let configuration = Configuration(
      store: .redis, storeMembers: ["timeout": "9s"], route: ["stream": "true", "lease": "30s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in
        var reply = Reply(status, [], content: .bytes([]), framing: status == 200 ? .length : .bare)
        reply.gate = gate
        return reply
      }
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      rig.redis?.freeze()
      gate.open()
      // Whatever would come does so within this.
      try await Task.sleep(for: .seconds(1))
      #expect(client.inbox.value.total == 0)
      rig.redis?.thaw()
      expectExecuted(try await client.response(), status)
      expectReplayed(try await rig.order("k"), status)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `the rest of a response is recorded after its client has hung up`(store: StoreKind) async throws {
    let gate = ScriptGate()
    let backend = try backend(gate)
    try await Rig.run(configuration(backend, store: store)) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k"))
      try await client.inbox.until("event 1") { $0.bytes.has("data: 1\n\n") }
      try await client.close()
      for _ in 1...3 { gate.open() }
      let replay = try await rig.order("k")
      expectReplayed(replay, 200)
      #expect(replay.text == Framing.chunked.body)
      #expect(backend.tally.requests == 1)
    }
  }

  @Test func `a stream too large to keep reaches its client whole, and is not replayed`() async throws {
    let gate = ScriptGate()
    let backend = try backend(gate)
    try await Rig.run(configuration(backend, ["max_response_body": "20B"])) { rig in
      for _ in 1...3 { gate.open() }
      let first = try await rig.order("k")
      expectExecuted(first, 200)
      #expect(first.text == Framing.chunked.body)
      let again = try await rig.order("k")
      expectRefused(again, 409, "response_not_kept", retryable: false)
      #expect(again.problem?.originalStatus == 200)
      #expect(backend.tally.requests == 1)
    }
  }

  @Test func `a stream that its backend ends too early is cut, and its response is not kept`() async throws {
    let backend = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
    }
    try await Rig.run(configuration(backend)) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k"))
      #expect(String(decoding: try await client.closedByPeer(), as: UTF8.self).hasSuffix("data: 1\n\n\r\n"))
      expectRefused(try await rig.order("k"), 409, "response_not_kept", retryable: false)
    }
  }

  @Test func `a stream whose record another node took over is cut`() async throws {
    let gate = ScriptGate()
    let second = OrdersBackend()
    try await second.start()
    let backend = try backend(gate)
    let configuration = configuration(
      backend, store: .redis, ["lease": "4s", "on_unknown": "retry", "wait_timeout": "20s"])
    var quick = configuration
    quick.storeMembers["timeout"] = "2s"
    quick.upstream["settle"] = "1s"
    try await Rig.run(quick) { rig in
      let other = try await rig.secondNode(before: second.port)
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k"))
      try await client.inbox.until("event 1") { $0.bytes.has("data: 1\n\n") }
      rig.semel.freeze()
      let taken = try await rig.order("k", at: other) { $0.status == 201 }
      expectExecuted(taken)
      rig.semel.thaw()
      for _ in 1...3 { gate.open() }
      let bytes = try await client.closedByPeer()
      #expect(!String(decoding: bytes, as: UTF8.self).hasSuffix("0\r\n\r\n"))
      expectReplayed(try await rig.order("k"), of: taken)
      try await other.kill()
    }
    try await second.stop()
  }

  @Test func `a silent backend's connection is closed when its client has gone`() async throws {
    let isLet = Watched(false)
    let backend = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
      connection.readToEnd()
      isLet.withValue { $0 = true }
    }
    try await Rig.run(configuration(backend)) { rig in
      let report = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order(path: "/events"), true], ["bytes", 1, 9], ["reset", 1]])
      #expect(try report[1].length == 9)
      _ = try await isLet.until("the end of the backend's connection") { $0 ? true : nil }
      try await rig.semel.counter("semel_in_flight_requests", becomes: 0)
    }
  }
}
