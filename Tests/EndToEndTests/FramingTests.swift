import TestSupport
import Testing

/// Responses that have no content, and clients of HTTP/1.0.
struct FramingTests {
  /// As many parts as one turn of the loop decodes, and some fewer and more, the last of which ends a body.
  @Test func `a request is complete wherever the work of one turn ends`() async throws {
    try await Rig.run(Configuration(route: ["idempotency": "required"])) { rig in
      let keyless = HTTPClient.request("GET", "/v1/orders")
      for chunks in 0..<40 {
        let padding =
          "POST /v1/orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
          + String(repeating: "1;a\r\nx\r\n", count: chunks) + "0\r\n\r\n"
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send(
          String(repeating: keyless, count: 58) + padding + Rig.orderText("k\(chunks)"))
        for _ in 0..<59 { #expect(try await client.response(to: "GET").status == 400) }
        expectExecuted(try await client.response())
      }
    }
  }

  /// A method, a response to it, and which length its head says.
  static let bare: [(String, Reply)] = [
    ("HEAD", Reply(200, [("Content-Length", "42"), ("X-Kept", "1")], framing: .bare)),
    ("POST", Reply(204, [("X-Kept", "1")], framing: .bare)),
    ("POST", Reply(304, [("ETag", "\"v\""), ("X-Kept", "1")], framing: .bare)),
    ("POST", Reply(200, [("X-Kept", "1")], body: "")),
  ]

  @Test(arguments: StoreKind.allCases, bare.indices)
  func `a response without content is replayed without content`(store: StoreKind, index: Int) async throws {
    let (method, reply) = Self.bare[index]
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { _ in reply }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      let text = HTTPClient.request(method, "/v1/orders", Rig.fields(key: "k"))
      var responses: [ReceivedResponse] = []
      // On one connection: a byte of content too many would be the next response's.
      for _ in 0..<3 {
        try await connection.send(text)
        responses.append(try await connection.response(to: method))
        #expect(connection.inbox.value.bytes.isEmpty)
      }
      expectExecuted(responses[0], reply.status)
      for response in responses {
        #expect(response.status == reply.status)
        #expect(response["X-Kept"] == "1")
        #expect(response.body.isEmpty)
        #expect(response["Transfer-Encoding"] == nil)
        #expect(response["Content-Length"] == responses[0]["Content-Length"])
      }
      expectReplayed(responses[1], reply.status)
      if method == "HEAD" { #expect(responses[1]["Content-Length"] == "42") }
      if reply.status == 204 { #expect(responses[1]["Content-Length"] == nil) }
      // The length that was recorded of a response to HEAD is not that of a response to GET.
      let inquiry = "/.well-known/idempotency/outcome?method=\(method)&path=/v1/orders&response=true"
      try await connection.send(HTTPClient.request("GET", inquiry, Rig.fields(key: "k")))
      let reported = try await connection.response(to: "GET")
      #expect(reported.status == reply.status && reported.body.isEmpty && reported["X-Kept"] == "1")
      if reply.status == 200 { #expect(reported["Content-Length"] == "0") }
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a client of HTTP/1.0 gets no chunks, first time and replayed`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, body: "chunked", framing: .chunked) }
      for number in 0..<2 {
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        try await connection.send(
          "POST /v1/orders HTTP/1.0\r\nHost: h\r\nAuthorization: a\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}"
        )
        let response = try await connection.response()
        #expect(response.status == 201)
        #expect(response.text == "chunked")
        #expect(response["Transfer-Encoding"] == nil)
        #expect(response.idempotencyStatus == (number == 0 ? "executed" : "replayed"))
        try await connection.closedByPeer()
      }
    }
  }

  @Test func `a client of HTTP/1.0 gets a passed-through response without chunks`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/open") { _ in Reply(200, body: "chunked", framing: .chunked) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send("GET /open HTTP/1.0\r\nHost: h\r\n\r\n")
      let response = try await connection.response(to: "GET")
      #expect(response.text == "chunked")
      #expect(response["Transfer-Encoding"] == nil)
      try await connection.closedByPeer()
    }
  }

  @Test func `trailers do not disturb the next request`() async throws {
    try await Rig.run { rig in
      let script: OrdersBackend.Script = { _ in
        var reply = Reply(201, body: "content", framing: .chunked)
        reply.trailers = [("Age", "7"), ("X-Checksum", "abc"), ("Server-Timing", "db;dur=53")]
        return reply
      }
      rig.backend.on("/v1/orders", script)
      rig.backend.on("/open", script)
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      for text in [
        Rig.orderText("k"), Rig.orderText("k"), Rig.orderText(nil, path: "/open"), Rig.orderText("k"),
      ] {
        try await connection.send(text)
        let response = try await connection.response()
        #expect(response.status == 201)
        #expect(response.text == "content")
        if response.idempotencyStatus == "replayed" {
          #expect(response.trailers.map(\.name) == ["X-Checksum"])
        }
      }
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a chunked request is understood`() async throws {
    try await Rig.run { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      let fields = Rig.fields(key: "k") + [("Transfer-Encoding", "chunked"), ("Trailer", "X-Sum")]
      try await connection.send(
        HTTPClient.request("POST", "/v1/orders", fields)
          + "5;ext=1\r\n{\"a\":\r\n2\r\n1}\r\n0\r\nX-Sum: 1\r\n\r\n")
      expectExecuted(try await connection.response())
      // The same payload, framed by its length.
      expectReplayed(try await rig.order("k", body: #"{"a":1}"#), 201)
      #expect(rig.backend.requests.map(\.text) == [#"{"a":1}"#])
      #expect(rig.backend.requests[0]["X-Sum"] == nil)
      #expect(rig.backend.requests[0]["Trailer"] == nil)
    }
  }
}
