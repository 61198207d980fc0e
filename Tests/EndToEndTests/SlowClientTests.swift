import TestSupport
import Testing

/// Clients that send or take next to nothing, and so keep what others need.
struct SlowClientTests {
  /// Few connections, a quarter of which is for protected requests.
  private static let few = Configuration(
    top: ["workers": "1"], upstream: ["max_connections": "8", "connect_timeout": "10s"])

  @Test func `slow uploads deny no other request`() async throws {
    try await Rig.run(Self.few) { rig in
      let slow = try await Self.clients(12, of: rig) { client, number in
        let isMeasured = number.isMultiple(of: 2)
        let framing = isMeasured ? "Content-Length: 1000" : "Transfer-Encoding: chunked"
        try await client.send(
          "PUT /slow HTTP/1.1\r\nHost: h\r\n\(framing)\r\n\r\n" + (isMeasured ? "x" : "1\r\nx\r\n"))
        // One after another: six may have a connection to the backend, and each later one takes that of one before.
        try await rig.backend.log.until("it has begun") { $0.begun > number ? true : nil }
      }
      for _ in 0..<10 {
        let passed = try await rig.semel.client.send("GET", "/passed")
        #expect(passed.status == 201, "\(passed.text)")
      }
      for client in slow { try await client.close() }
    }
  }

  @Test func `the kernel takes little of a replay that nobody reads`() async throws {
    let configuration = Configuration(top: ["workers": "1"], route: ["max_response_body": "8MiB"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/large") { _ in Reply(201, [], content: .filler(4 << 20)) }
      let request = HTTPClient.request(
        "POST", "/v1/large", Rig.fields(key: "k") + [("Content-Length", "0")])
      let first = try await RawClient(port: rig.semel.ports.proxy)
      try await first.send(request)
      #expect(try await first.response().status == 201)
      let client = try await RawClient(port: rig.semel.ports.proxy, receiveBuffer: 4096)
      try await client.setReading(false)
      try await client.send(request)
      var taken = 0
      for _ in 0..<2000 where taken == 0 {
        try await Task.sleep(for: .milliseconds(10))
        taken = try KernelConnections().unacknowledged(at: rig.semel.ports.proxy)
      }
      #expect(taken > 0)
      // The one event loop has done with the replay when it serves another client.
      #expect(try await rig.semel.client.send("GET", "/passed").status == 201)
      #expect(try KernelConnections().unacknowledged(at: rig.semel.ports.proxy) < 1 << 20)
      try await client.close()
    }
  }

  @Test func `a slow upload ends once the least rate is missed, although each byte comes in time`()
    async throws
  {
    let configuration = Configuration(top: ["limits": "{body_timeout: 2s}"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send("PUT /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n")
      let sending = Task {
        for _ in 0..<1000 {
          try await client.send("x")
          // The time of the attack: far less than the time-out.
          try await Task.sleep(for: .milliseconds(100))
        }
      }
      defer { sending.cancel() }
      #expect(try await client.response(to: "PUT", within: .seconds(20)).status == 408)
    }
  }

  @Test func `an upload at a modest rate comes through, however long it takes`() async throws {
    let configuration = Configuration(top: ["limits": "{body_timeout: 4s}"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send("PUT /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n")
      for _ in 0..<20 {
        try await client.send(String(repeating: "x", count: 1000))
        // Three time-outs in all.
        try await Task.sleep(for: .milliseconds(600))
      }
      #expect(try await client.response(to: "PUT").status == 201)
    }
  }

  @Test func `a protected body at a modest rate comes through, however long it takes`() async throws {
    let configuration = Configuration(top: ["limits": "{body_timeout: 2s}"])
    try await Rig.run(configuration) { rig in
      let text = Rig.orderText("k", body: String(repeating: "x", count: 20_000))
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(text.dropLast(20_000).description)
      for _ in 0..<20 {
        try await client.send(String(repeating: "x", count: 1000))
        // Three time-outs in all.
        try await Task.sleep(for: .milliseconds(300))
      }
      expectExecuted(try await client.response())
    }
  }

  @Test func `a protected body of a byte now and then is refused, although each comes in time`() async throws
  {
    // A route's own time-out counts before that of the limits.
    let configuration = Configuration(top: ["limits": "{body_timeout: 5m}"], route: ["body_timeout": "2s"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(
        Rig.orderText("k", body: String(repeating: "x", count: 1000)).dropLast(1000).description)
      let sending = Task {
        for _ in 0..<1000 {
          try await client.send("x")
          // The time of the attack: far less than the time-out.
          try await Task.sleep(for: .milliseconds(100))
        }
      }
      defer { sending.cancel() }
      #expect(try await client.response(within: .seconds(20)).status == 408)
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a protected body that pauses is refused, however fast it began`() async throws {
    let configuration = Configuration(top: ["limits": "{body_timeout: 1s}"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let text = Rig.orderText("k", body: String(repeating: "x", count: 200_000))
      // By the rate alone it had three minutes left.
      try await client.send(text.dropLast(1000).description)
      #expect(try await client.response(within: .seconds(20)).status == 408)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `a body that breaks off at its beginning does not reach the backend`() async throws {
    let backend = try RawServer { try $0.readRequest() }
    let configuration = Configuration(
      upstream: ["url": "'http://127.0.0.1:\(backend.port)'"], route: ["idempotency": "off"])
    // A client that is slower than a quarter of a second reaches the backend, and does not count.
    try await Rig.run(configuration, slots: Rig.allSlots) { rig in
      var (number, prompt, early) = (0, 0, 0)
      while prompt < 5 {
        number += 1
        let before = backend.tally.connections
        let client = try await RawClient(port: rig.semel.ports.proxy)
        let start = ContinuousClock.now
        try await client.send("PUT /broken HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nhalf")
        // A reset drops the bytes that Semel has not read yet.
        try await rig.semel.counter("semel_in_flight_requests", becomes: 1)
        try await client.reset()
        let isPrompt = ContinuousClock.now - start < .milliseconds(150)
        try await rig.semel.counter("semel_hang_ups_total", isAtLeast: number)
        if isPrompt {
          prompt += 1
          early += backend.tally.connections - before
        }
      }
      // On a busy machine Semel may read a reset after the time for which a body is awaited.
      #expect(early < 3)
    }
  }

  private static func clients(
    _ count: Int, of rig: Rig, _ begin: (RawClient, Int) async throws -> Void
  ) async throws -> [RawClient] {
    var clients: [RawClient] = []
    for number in 0..<count {
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await begin(client, number)
      clients.append(client)
    }
    return clients
  }
}
