import TestSupport
import Testing

/// The end of connections that are held without being used well, while others are served.
struct AbuseTests {
  /// In KiB.
  private static let maxMemory = 100 << 10

  @Test(arguments: ["/open", "/v1/orders"])
  func `a client that does not read its response is cut`(path: String) async throws {
    try await Rig.run(Configuration(top: ["limits": "{write_timeout: 10s}"])) { rig in
      let size = 64 << 20
      rig.backend.on(path) { $0.number == 1 ? Reply(200, [], content: .filler(size)) : Reply() }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.setReading(false)
      let began = ContinuousClock.now
      try await connection.send(Rig.orderText("slow", path: path))
      try await rig.backend.arrived(1)
      expectExecuted(try await rig.order("other"))
      try await rig.semel.counter("semel_slow_readers_total", becomes: 1, within: .seconds(40))
      // Bytes that the kernel took at once are no progress, and give the client no further ten seconds.
      #expect(10..<19 ~= (ContinuousClock.now - began) / .seconds(1))
      connection.inbox.withValue { $0.isCounting = true }
      // A reset may have closed it already.
      try? await connection.setReading(true)
      try await connection.closedByPeer()
      #expect(connection.inbox.value.total < size)
      let memory = try rig.semel.memory("VmHWM")
      #expect(memory < Self.maxMemory)
    }
  }

  /// Frames of HTTP/2: a client with windows as large as they may be, and its requests of a few pages. Together they fill
  /// what Semel holds of a connection.
  private static let openWindows: [UInt8] =
    Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [
      0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7F, 0xFF, 0xFF, 0xFF,
    ]
    + [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x40, 0, 0, 0]
    + [1, 3, 5, 7].flatMap { stream -> [UInt8] in
      [0, 0, 12, 1, 5, 0, 0, 0, stream, 0x82, 0x86, 0x04, 5] + Array("/open".utf8) + [0x01, 1, 0x61]
    }

  @Test func `a client of HTTP 2 that does not read at all is reset`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{write_timeout: 4s}"])) { rig in
      rig.backend.on("/open") { _ in Reply(200, [], content: .filler(64 << 20)) }
      let connection = try await RawClient(port: rig.semel.ports.proxy, receiveBuffer: 64 << 10)
      connection.inbox.withValue { $0.isCounting = true }
      try await connection.setReading(false)
      try await connection.send(Self.openWindows)
      try await rig.backend.arrived(4)
      try await rig.semel.counter("semel_open_connections", becomes: 0)
      // An end in order would leave megabytes in the kernel, for as long as the client likes.
      try? await connection.setReading(true)
      try await connection.closedByPeer()
      #expect(connection.inbox.value.isReset)
    }
  }

  @Test func `a client that reads slowly is not cut`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{write_timeout: 6s, idle_timeout: 6s}"])) { rig in
      let size = 96 << 20
      rig.backend.on("/open") { _ in Reply(200, [], content: .filler(size)) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      connection.inbox.withValue { $0.isCounting = true }
      try await connection.setReading(false)
      try await connection.send(Rig.orderText(nil, path: "/open"))
      for _ in 0..<12 {
        // Pauses that are shorter than the time-out, and longer in all.
        try await Task.sleep(for: .milliseconds(600))
        try await connection.setReading(true)
        try await Task.sleep(for: .milliseconds(20))
        try await connection.setReading(false)
      }
      try await connection.setReading(true)
      _ = try await connection.inbox.until("the whole response", within: .seconds(40)) { inbox -> Bool? in
        inbox.total > size ? true : nil
      }
      #expect(try await rig.semel.counter("semel_slow_readers_total") == 0)
    }
  }

  @Test func `a client that has taken all of its response may be idle for longer`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{write_timeout: 4s}"])) { rig in
      rig.backend.on("/open") { _ in Reply(200, [], content: .filler(8 << 20)) }
      let connection = try await RawClient(port: rig.semel.ports.proxy, receiveBuffer: 64 << 10)
      try await connection.setReading(false)
      try await connection.send(Rig.orderText(nil, path: "/open"))
      try await rig.backend.arrived(1)
      try await Task.sleep(for: .milliseconds(300))
      try await connection.setReading(true)
      #expect(try await connection.response().body.count == 8 << 20)
      // Longer than `write_timeout`.
      try await Task.sleep(for: .milliseconds(5500))
      try await connection.send(Rig.orderText("k"))
      expectExecuted(try await connection.response())
    }
  }

  @Test func `a flood of pipelined requests waits until the client reads`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{write_timeout: 1s}", "workers": "1"])) { rig in
      let body = String(repeating: "x", count: 100 << 10)
      rig.backend.on("/v1/orders") { $0.number == 1 ? Reply(body: body) : Reply() }
      expectExecuted(try await rig.order("k"))
      // A million responses of 100 KiB each, of which nobody takes one.
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.setReading(false)
      let flood = Task {
        let requests = String(repeating: Rig.orderText("k"), count: 1000)
        for _ in 0..<1000 { try await connection.send(requests) }
      }
      try await rig.semel.counter("semel_replays_total", isAtLeast: 2)
      for number in 0..<20 { expectExecuted(try await rig.order("other-\(number)")) }
      try await rig.semel.counter("semel_slow_readers_total", becomes: 1)
      let memory = try rig.semel.memory("VmHWM")
      #expect(memory < Self.maxMemory)
      _ = await flood.result
    }
  }

  @Test func `pipelined requests all get their responses when the client reads`() async throws {
    // Many times what a client may send ahead.
    try await Rig.run { rig in
      let count = 2000
      let body = String(repeating: "x", count: 10 << 10)
      rig.backend.on("/v1/orders") { _ in Reply(body: body) }
      expectExecuted(try await rig.order("k"))
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.setReading(false)
      let sent = Task { try await connection.send(String(repeating: Rig.orderText("k"), count: count)) }
      try await rig.semel.counter("semel_replays_total", isAtLeast: 2)
      try await connection.setReading(true)
      for _ in 0..<count { expectReplayed(try await connection.response(), 201) }
      try await sent.value
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `many slow heads time out, and other clients are served meanwhile`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{header_timeout: 4s}", "workers": "1"])) { rig in
      var slow: [RawClient] = []
      for _ in 0..<100 {
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        try await connection.send("GET /open HTTP/1.1\r\nX-Slow: ")
        slow.append(connection)
      }
      let trickle = Task { [slow] in
        while !Task.isCancelled {
          for connection in slow { try? await connection.send("x") }
          try await Task.sleep(for: .milliseconds(50))
        }
      }
      for number in 0..<20 { expectExecuted(try await rig.order("other-\(number)")) }
      for connection in slow {
        let bytes = try await connection.closedByPeer()
        #expect(bytes.isEmpty || String(decoding: bytes, as: UTF8.self).hasPrefix("HTTP/1.1 408 "))
      }
      trickle.cancel()
      #expect(rig.backend.requests.count == 20)
    }
  }

  @Test func `a body that pauses too long gets 408, also if it is passed through`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{body_timeout: 500ms}"])) { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send("PUT /open HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nbegun")
      expectExecuted(try await rig.order("other"))
      let refused = try await connection.response(to: "PUT")
      #expect(refused.status == 408)
      #expect(refused["Connection"] == "close")
      try await connection.closedByPeer()
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a body that arrived while the process stood still is not late`() async throws {
    let limits = "{body_timeout: 6s, header_timeout: 6s, idle_timeout: 6s}"
    try await Rig.run(Configuration(top: ["limits": limits, "workers": "1"])) { rig in
      let size = 300 << 10
      let text = Rig.orderText("k", body: String(repeating: "x", count: size))
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      let idle = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(text.dropLast(size - 100).description)
      expectExecuted(try await rig.order("other"))
      rig.semel.freeze()
      async let sent: Void = connection.send(text.dropFirst(text.count - size + 100).description)
      try await idle.send(Rig.orderText("idle"))
      // Longer than the limits.
      try await Task.sleep(for: .milliseconds(6500))
      rig.semel.thaw()
      try await sent
      expectExecuted(try await connection.response())
      expectExecuted(try await idle.response())
    }
  }

  @Test func `a backend that falls silent within a passed response ends with tunnel_timeout`() async throws {
    let backend = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun")
      connection.readToEnd()
    }
    let configuration = Configuration(
      top: ["limits": "{tunnel_timeout: 500ms}"], upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(HTTPClient.request("GET", "/open"))
      let bytes = try await client.closedByPeer()
      #expect(String(decoding: bytes, as: UTF8.self).hasSuffix("\r\n\r\nbegun"))
    }
  }

  @Test func `a host that is empty is a bad request`() async throws {
    try await Rig.run { rig in
      for path in ["/v1/orders", "/open", "http://h/open"] {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send("POST \(path) HTTP/1.1\r\nHost: \r\nContent-Length: 0\r\n\r\n")
        #expect(try await client.response().status == 400)
      }
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `fields are counted, and lines measured`() async throws {
    try await Rig.run { rig in
      let long = String(repeating: "a", count: 16 << 10)
      let cases: [(fields: [(String, String)], path: String, status: Int)] = [
        ((0..<90).map { ("X-\($0)", "a") }, "/open", 201), ((0..<100).map { ("X-\($0)", "a") }, "/open", 431),
        ([("X", String(long.dropLast(100)))], "/open", 201), ([("X", long)], "/open", 431),
        ([], "/open/" + long, 431),
      ]
      for (fields, path, status) in cases {
        let response = try await rig.order(nil, path: path, fields)
        #expect(response.status == status)
      }
      #expect(rig.backend.requests.count == 2)
    }
  }
}
