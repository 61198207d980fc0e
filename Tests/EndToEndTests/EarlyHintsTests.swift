import TestSupport
import Testing

/// Interim responses of the backend's on their way to clients that understand them.
struct EarlyHintsTests {
  /// Hints, and the response once the gate is open.
  private func run(
    _ body: @escaping @Sendable (Rig, ScriptGate) async throws -> Void
  ) async throws {
    let gate = ScriptGate()
    let backend = try RawServer { connection in
      while true {
        try connection.readRequest()
        try connection.write("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x\r\nX: 1\r\n\r\n")
        gate.pass()
        try connection.write("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in try await body(rig, gate) }
  }

  @Test func `early hints reach a client before the response`() async throws {
    try await run { rig, gate in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      for _ in 0..<2 {
        try await client.send(HTTPClient.request("POST", "/open", [], body: "{}"))
        let hints = try await client.response()
        #expect(hints.status == 103)
        #expect(hints["Link"] == "</a.css>")
        #expect(hints["X"] == nil && hints["Content-Length"] == nil && hints["Transfer-Encoding"] == nil)
        gate.open()
        #expect(try await client.response().status == 102)
        #expect(try await client.response().text == "ok")
      }
    }
  }

  @Test func `early hints reach a client of HTTP 2, too`() async throws {
    try await run { rig, gate in
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        [
          ["open", 1, HTTP2Script.order(path: "/open"), true], ["interim", 1], ["note", "hints"],
          ["response", 1],
        ])
      try await script.says("hints")
      gate.open()
      let report = try await script.report()
      #expect(try report[1].interim == [103, 102])
      #expect(try report[1].status == 200)
    }
  }

  @Test func `a client of HTTP 1_0 and a protected route get no early hints`() async throws {
    try await run { rig, gate in
      for text in [
        "GET /open HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", Rig.orderText("k"),
      ] {
        gate.open()
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send(text)
        #expect(try await client.response().text == "ok")
      }
    }
  }

  enum Reader: CaseIterable { case http1, idleHTTP1, http2 }

  @Test(arguments: Reader.allCases)
  func `endless early hints are bounded, and dropped for a client that does not read`(
    reader: Reader
  ) async throws {
    let backend = try RawServer { connection in
      try connection.readRequest()
      let hint = "HTTP/1.1 103 Early Hints\r\nLink: </\(String(repeating: "a", count: 900)).css>\r\n\r\n"
      let hints = String(repeating: hint, count: 100)
      for _ in 0..<200 { try connection.write(hints) }
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      try await expectFewHints(rig, to: reader) { await backend.reached { $0.written > 20_000 * 900 } }
    }
  }

  @Test(arguments: Reader.allCases)
  func `endless early hints of a backend of HTTP 2 are bounded, too`(reader: Reader) async throws {
    try await HTTP2Backend.run(isSecure: false) { rig, backend in
      try await expectFewHints(rig, to: reader) { try await backend.line(containing: "hinted") }
    }
  }

  /// - Parameter hinted: Waits until the backend has sent all its hints.
  private func expectFewHints(
    _ rig: Rig, to reader: Reader, hinted: () async throws -> Void
  ) async throws {
    if reader == .http2 {
      let report = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order(path: "/endless"), true], ["response", 1]])
      #expect(try report[1].body == "ok")
      #expect(try 1...100 ~= report[1].interim.count)
    } else {
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.setReading(reader == .http1)
      try await client.send(HTTPClient.request("GET", "/endless"))
      try await hinted()
      try await client.setReading(true)
      var hints = 0
      while case let response = try await client.response(to: "GET"), response.text != "ok" {
        #expect(response.status == 103)
        hints += 1
      }
      #expect(1...100 ~= hints)
    }
    #expect(try rig.semel.memory("VmHWM") < 100 << 10)
  }

  @Test func `early hints of a backend of HTTP 2 reach clients of both versions`() async throws {
    let port = FreePort.find()
    let backend = try await Python.serve("http2_backend", ["\(port)"])
    let configuration = Configuration(
      upstream: ["url": "'http://127.0.0.1:\(port)'", "http2": "prior_knowledge"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(HTTPClient.request("GET", "/hints"))
      let hints = try await client.response(to: "GET")
      #expect(hints.status == 103)
      #expect(hints["Link"] == "</style.css>; rel=preload")
      #expect(try await client.response(to: "GET").text == "ok")
      let report = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order(path: "/hints"), true], ["response", 1]])
      #expect(try report[1].interim == [103])
      #expect(try report[1].body == "ok")
      expectExecuted(try await rig.order("k", path: "/v1/hints"), 200)
    }
    withExtendedLifetime(backend) {}
  }
}
