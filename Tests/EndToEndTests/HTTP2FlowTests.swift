import TestSupport
import Testing

/// Windows of HTTP/2: who is slow holds back nobody else, and not for ever.
struct HTTP2FlowTests {
  private static let large = 4 << 20

  @Test func `a stream that is not read holds back only its own backend`() async throws {
    try await Rig.run(Configuration(route: ["idempotency": "off"])) { rig in
      rig.backend.on("/v1/large") { _ in Reply(200, [], content: .filler(Self.large)) }
      let report = try await HTTP2Script.run(
        rig,
        [
          ["hold", 1], ["open", 1, HTTP2Script.order(path: "/v1/large"), true], ["bytes", 1, 65535],
          ["open", 3, HTTP2Script.order(path: "/v1/large"), true], ["response", 3],
        ])
      #expect(try report[3].length == Self.large)
      #expect(try report[1].length == 65535)
      #expect(try !report[1].ended)
      #expect(try rig.semel.memory("VmHWM") < 200 << 10)
    }
  }

  @Test func `a response head that does not fit a frame resets its stream with HTTP_1_1_REQUIRED`()
    async throws
  {
    try await Rig.run { rig in
      let large = String(repeating: "{", count: 10_000)
      rig.backend.on("/v1/orders") { $0.number == 1 ? Reply(201, [("X-Large", large)], body: "{}") : Reply() }
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, HTTP2Script.order("k"), true], ["was_reset", 1],
          // The others are served on.
          ["open", 3, HTTP2Script.order("other"), true], ["response", 3],
        ])
      // HTTP_1_1_REQUIRED
      #expect(try report[1].reset == 13)
      #expect(try report[3].status == 201)
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(
        "POST /v1/orders HTTP/1.1\r\nHost: orders.example\r\nAuthorization: Bearer alice\r\n"
          + "Idempotency-Key: k\r\n\r\n")
      let again = try await connection.response()
      expectReplayed(again, 201)
      #expect(again["X-Large"] == large)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a client that never opens its window is reset`() async throws {
    let configuration = Configuration(top: ["limits": "{write_timeout: 4s}"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(200, [], content: .filler(500_000)) }
      let report = try await HTTP2Script.run(
        rig,
        [
          ["hold", 1], ["open", 1, HTTP2Script.order("k"), true], ["was_reset", 1],
          // The others are served on.
          ["open", 3, HTTP2Script.order("k"), true], ["response", 3],
        ])
      #expect(try report[1].reset == 8)
      #expect(try report[3].length == 500_000)
      #expect(try report[3].fields["idempotency-status"] == "replayed")
    }
  }

  @Test func `a body is read only as fast as its backend reads`() async throws {
    let over = ScriptGate()
    let backend = try RawServer(receiveBuffer: 64 << 10) { _ in over.pass() }
    let configuration = Configuration(
      upstream: ["url": "'http://127.0.0.1:\(backend.port)'"], route: ["idempotency": "off"])
    try await Rig.run(configuration) { rig in
      let report = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order(), false], ["upload", 1, .number(64 << 20)]])
      #expect(try report[1].uploaded ?? 0 < 32 << 20)
      over.open()
    }
  }

  @Test func `a large body arrives whole`() async throws {
    try await Rig.run(Configuration(route: ["idempotency": "off"])) { rig in
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, HTTP2Script.order(), false], ["upload", 1, 5_000_000], ["data", 1, "", true],
          ["response", 1],
        ])
      #expect(try report[1].status == 201)
      #expect(rig.backend.requests.map(\.bodyLength) == [5_000_000])
    }
  }

  @Test func `limits are announced, and the window of a stream is 64 KiB`() async throws {
    let configuration = Configuration(top: ["limits": "{http2_max_streams: 7, header_bytes: 8KiB}"])
    try await Rig.run(configuration) { rig in
      let report = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order("k"), true], ["response", 1]])
      // SETTINGS_MAX_CONCURRENT_STREAMS, _INITIAL_WINDOW_SIZE and _MAX_HEADER_LIST_SIZE (RFC 9113, section 6.5.2).
      #expect(report.settings["3"] == 7)
      #expect(report.settings["4"] == 64 << 10)
      #expect(report.settings["6"] == 16 << 10)
    }
  }
}
