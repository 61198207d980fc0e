import TestSupport
import Testing

/// Requests that are too large, too slow or too many, with nothing claimed and nothing sent.
struct LimitTests {
  @Test func `a body that is too large is refused, and the key stays free`() async throws {
    try await Rig.run(Configuration(route: ["max_request_body": "1KiB"])) { rig in
      let declared = try await rig.order("k", body: String(repeating: "x", count: 1025))
      expectRefused(declared, 413, "request_too_large", retryable: false)

      let chunked = try await RawClient(port: rig.semel.ports.proxy)
      let fields = Rig.fields(key: "k") + [("Transfer-Encoding", "chunked")]
      let piece = "400\r\n" + String(repeating: "x", count: 1024) + "\r\n"
      try await chunked.send(HTTPClient.request("POST", "/v1/orders", fields) + piece + piece)
      expectRefused(try await chunked.response(), 413, "request_too_large", retryable: false)

      #expect(rig.backend.log.value.begun == 0)
      expectExecuted(try await rig.order("k", body: String(repeating: "y", count: 1024)))
      #expect(rig.backend.requests.map(\.attempt) == ["1"])
    }
  }

  @Test func `a body that comes too slowly is refused, and the key stays free`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{body_timeout: 500ms}"])) { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k", [("Content-Length", "15")]).dropLast(5).description)
      let refused = try await connection.response()
      #expect(refused.status == 408)
      #expect(refused.problem?.status == 408)
      #expect(rig.backend.log.value.begun == 0)
      expectExecuted(try await rig.order("k"))
    }
  }

  @Test func `a head that is too large is refused`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{header_bytes: 4KiB}"])) { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k", [("X-Long", String(repeating: "x", count: 5000))]))
      #expect(try await connection.response().status == 431)
      try await connection.closedByPeer()
      #expect(rig.backend.log.value.begun == 0)
    }
  }

  @Test func `a head that comes too slowly ends the connection`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{header_timeout: 500ms}"])) { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send("POST /v1/orders HTTP/1.1\r\nHost: h\r\n")
      let bytes = try await connection.closedByPeer(within: .seconds(8))
      if !bytes.isEmpty { #expect(String(decoding: bytes, as: UTF8.self).hasPrefix("HTTP/1.1 408 ")) }
    }
  }

  @Test func `an idle connection ends`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{idle_timeout: 500ms}"])) { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      expectExecuted(try await connection.response())
      #expect(try await connection.closedByPeer().isEmpty)
    }
  }

  @Test func `too much in flight is refused, and the key stays free`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{max_in_flight: 1}", "workers": "1"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("first")
      try await rig.backend.arrived(1)
      let refused = try await rig.order("second")
      expectRefused(refused, 503, "overloaded", retryable: true)
      expectRetryAfter(refused)
      gate.open()
      expectExecuted(try await first)
      expectExecuted(try await rig.order("second"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "1"])
    }
  }

  @Test func `held bodies stay within their memory`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{body_memory: 1MiB}", "workers": "1"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let body = String(repeating: "x", count: 700 << 10)
      async let first = rig.order("first", body: body)
      try await rig.backend.arrived(1)
      let refused = try await rig.order("second", body: body)
      expectRefused(refused, 503, "overloaded", retryable: true)
      gate.open()
      expectExecuted(try await first)
      expectExecuted(try await rig.order("second", body: body))
    }
  }
}
