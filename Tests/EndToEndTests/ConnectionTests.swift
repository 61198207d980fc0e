import TestSupport
import Testing

/// The client's connection: kept, pipelined, and asked before a body is sent.
struct ConnectionTests {
  @Test func `a connection is kept for many requests`() async throws {
    try await Rig.run { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      for number in 0..<20 {
        try await connection.send(Rig.orderText("k\(number / 2)"))
        let response = try await connection.response()
        #expect(response.idempotencyStatus == (number % 2 == 0 ? "executed" : "replayed"))
      }
      // A refusal of a well-framed request leaves the connection as it is.
      try await connection.send(Rig.orderText(nil) + Rig.orderText("k0", body: "{}") + Rig.orderText("k0"))
      #expect(try await connection.response().status == 400)
      #expect(try await connection.response().status == 409)
      #expect(try await connection.response().status == 201)
      #expect(rig.backend.requests.count == 10)
    }
  }

  @Test func `pipelined requests get their responses in order`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/slow") { _ in Reply(body: "slow", delay: .milliseconds(300)) }
      rig.backend.on("/v1/fast") { _ in Reply(body: "fast") }
      rig.backend.on("/open") { _ in Reply(body: "open", framing: .chunked) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(
        Rig.orderText("k1", path: "/v1/slow") + Rig.orderText("k2", path: "/v1/fast")
          + Rig.orderText(nil, path: "/open") + Rig.orderText(nil) + Rig.orderText("k1", path: "/v1/slow"))
      var texts: [String] = []
      for _ in 0..<5 {
        let response = try await connection.response()
        texts.append(response.problem?.code ?? response.text)
      }
      #expect(texts == ["slow", "fast", "open", "key_missing", "slow"])
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test func `a request may come byte by byte`() async throws {
    try await Rig.run { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      for byte in Rig.orderText("k").utf8 { try await connection.send([byte]) }
      expectExecuted(try await connection.response())
      #expect(rig.backend.requests.map(\.text) == [#"{"amount":1999}"#])
    }
  }

  @Test func `a client that wants to close is closed`() async throws {
    try await Rig.run { rig in
      for path in ["/v1/orders", "/open"] {
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        try await connection.send(Rig.orderText("k", path: path, [("Connection", "close")]))
        let response = try await connection.response()
        #expect(response.status == 201)
        #expect(response["Connection"]?.lowercased() == "close")
        #expect(try await connection.closedByPeer().isEmpty)
      }
    }
  }

  @Test func `a client of HTTP/1.0 keeps its connection exactly if it asks for that`() async throws {
    try await Rig.run { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      let text = Rig.orderText("k", [("Connection", "keep-alive")]).replacing("HTTP/1.1", with: "HTTP/1.0")
      try await connection.send(text)
      let response = try await connection.response()
      expectExecuted(response)
      #expect(response["Connection"] == "keep-alive")
      try await connection.send(Rig.orderText("k").replacing("HTTP/1.1", with: "HTTP/1.0"))
      let replay = try await connection.response()
      expectReplayed(replay, of: response)
      #expect(replay["Connection"] == "close")
      #expect(try await connection.closedByPeer().isEmpty)
    }
  }

  @Test func `a half-closed client still gets its response`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders") { _ in Reply(body: "slow", delay: .milliseconds(200)) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await connection.closeSending()
      #expect(try await connection.response().text == "slow")
    }
  }

  @Test func `100 Continue is sent once head, key and caller are accepted`() async throws {
    try await Rig.run { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      let body = #"{"amount":1}"#
      let head = Rig.orderText("k", body: body, [("Expect", "100-continue")]).dropLast(body.count)
      try await connection.send(String(head))
      let interim = try await connection.response()
      #expect(interim.status == 100)
      #expect(rig.backend.log.value.begun == 0)
      try await connection.send(body)
      expectExecuted(try await connection.response())
      #expect(rig.backend.requests.map(\.text) == [body])
    }
  }

  @Test(arguments: ["no key", "no caller", "too large"])
  func `100 Continue is not sent for a request that is refused`(why: String) async throws {
    try await Rig.run(Configuration(route: ["max_request_body": "1KiB"])) { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      let length = why == "too large" ? 2000 : 10
      let fields = Rig.fields(key: "k").filter {
        why != ($0.0 == "Idempotency-Key" ? "no key" : $0.0 == "Authorization" ? "no caller" : "")
      }
      try await connection.send(
        HTTPClient.request(
          "POST", "/v1/orders", fields + [("Content-Length", "\(length)"), ("Expect", "100-continue")]))
      let response = try await connection.response()
      #expect(response.status == ["no key": 400, "no caller": 401, "too large": 413][why])
      #expect(rig.backend.log.value.begun == 0)
    }
  }

  @Test func `100 Continue is sent for a request that is passed through, too`() async throws {
    try await Rig.run { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(
        HTTPClient.request("POST", "/open", [("Content-Length", "2"), ("Expect", "100-continue")]))
      #expect(try await connection.response().status == 100)
      try await connection.send("{}")
      #expect(try await connection.response().status == 201)
      #expect(rig.backend.requests.map(\.text) == ["{}"])
    }
  }
}
