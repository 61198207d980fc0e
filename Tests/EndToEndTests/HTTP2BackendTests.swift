import TestSupport
import Testing

/// Exchanges with a backend that speaks HTTP/2, frame by frame as a script has it: under TLS by ALPN, and in clear by
/// prior knowledge.
struct HTTP2BackendTests {
  @Test(arguments: [true, false])
  func `a keyed request runs once and is replayed`(isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure) { rig, backend in
      let first = try await rig.order("k")
      expectExecuted(first)
      #expect(first.text == #"{"order":1}"#)
      expectReplayed(try await rig.order("k"), of: first)
      #expect(try await HTTP2Backend.runs(of: "k", at: backend) == 1)
      #expect(backend.output.contains("ran POST /v1/orders k 15\n"))
    }
  }

  @Test(arguments: [true, false])
  func `a streamed body arrives whole, with its length and without`(isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure) { rig, backend in
      for framing in ["Content-Length: 300000", "Transfer-Encoding: chunked"] {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send("POST /open/\(framing.count) HTTP/1.1\r\nHost: h\r\n\(framing)\r\n\r\n")
        for _ in 0..<3 {
          let piece = String(repeating: "x", count: 100_000)
          try await client.send(framing.hasPrefix("C") ? piece : "186A0\r\n\(piece)\r\n")
        }
        if framing.hasPrefix("T") { try await client.send("0\r\n\r\n") }
        #expect(try await client.response().status == 201)
        try await backend.line(containing: "ran POST /open/\(framing.count) - 300000")
      }
    }
  }

  @Test(arguments: [true, false])
  func `trailers reach clients of both versions, are recorded and replayed`(isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure) { rig, _ in
      for path in ["/v1/trailers", "/v1/open"] {
        let first = try await rig.order("k", path: path)
        expectExecuted(first, 200)
        #expect(first.text == "body")
        #expect(first.trailers.map(\.name) == ["x-sum"])
        let again = try await rig.order("k", path: path)
        expectReplayed(again, of: first)
        #expect(again.trailers.map(\.value) == first.trailers.map(\.value))
        let report = try await HTTP2Script.run(
          rig,
          [
            ["open", 1, HTTP2Script.order("k2", path: path), true], ["response", 1],
            ["open", 3, HTTP2Script.order(path: String(path.dropFirst(3))), true], ["response", 3],
          ])
        for stream in [1, 3] {
          #expect(try report[stream].body == "body")
          #expect(try report[stream].trailers["x-sum"] != nil)
        }
      }
    }
  }

  @Test(arguments: [true, false])
  func `trailers are filtered, and a length among them is dropped`(isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      let first = try await rig.order("k", path: "/v1/filtered")
      expectExecuted(first, 200)
      #expect(first.text == "body" && first.trailers.map(\.name) == ["x-sum", "age"], "\(first.trailers)")
      let again = try await rig.order("k", path: "/v1/filtered")
      expectReplayed(again, of: first)
      #expect(again.trailers.map(\.name) == ["x-sum"], "\(again.trailers)")
      let report = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order(path: "/filtered"), true], ["response", 1]])
      #expect(try Set(report[1].trailers.keys) == ["x-sum", "age"])
      expectRefused(
        try await rig.order("c", path: "/v1/control"), 409, "response_not_kept", retryable: false)
      expectExecuted(try await rig.order("after"))
      // It is the stream's fault alone: there is one connection for claimed requests, and one for the others.
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test(arguments: [true, false])
  func `responses without a body are framed correctly`(isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure) { rig, _ in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let cases: [(String, String, Int, String?)] = [
        ("HEAD", "/v1/head", 200, "5"), ("DELETE", "/v1/empty", 204, nil), ("GET", "/v1/unchanged", 304, nil),
      ]
      for key in ["k", "k", nil] {
        for (method, path, status, length) in cases {
          let fields = Rig.fields(key: key)
          let target = key == nil ? String(path.dropFirst(3)) : path
          try await client.send(HTTPClient.request(method, target, fields))
          let response = try await client.response(to: method)
          #expect(response.status == status)
          #expect(response["Content-Length"] == length, "\(method) \(response.fields)")
          #expect(response["Transfer-Encoding"] == nil)
        }
      }
    }
  }

  @Test(arguments: ["late", "ahead"], [true, false])
  func `an unrequested response reaches nobody`(way: String, isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before", path: "/v1/\(way)"))
      let client = try await RawClient(port: rig.semel.ports.proxy)
      rig.semel.freeze()
      try await client.send(Rig.orderText("frozen"))
      try await backend.line(containing: "sent /v1/\(way)")
      rig.semel.thaw()
      let frozen = try await client.response()
      #expect(!frozen.text.contains("nobody"), "\(frozen)")
      for name in ["alice", "bob", "carol"] {
        let first = try await rig.order(name)
        expectExecuted(first)
        #expect(first.text.hasPrefix(#"{"order":"#))
      }
    }
  }

  @Test(arguments: ["short", "malformed"], [false, true])
  func `a claimed request whose response breaks a rule is completed with its status, and was sent once`(
    fault: String, isSecure: Bool
  ) async throws {
    try await HTTP2Backend.run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      for _ in 0..<2 {
        let refused = try await rig.order("k", path: "/v1/\(fault)")
        expectRefused(refused, 409, "response_not_kept", retryable: false)
        #expect(refused.problem?.originalStatus == 200)
      }
      expectExecuted(try await rig.order("after"))
      #expect(try await HTTP2Backend.runs(of: "k", at: backend) == 1)
    }
  }

  @Test(arguments: ["cancelled", "stopped", "cut", "half", "contradicted"], [false, true])
  func `a claimed request without a whole response is unknown, and was sent once`(
    fault: String, isSecure: Bool
  ) async throws {
    try await HTTP2Backend.run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      let lost = try await rig.order("k", path: "/v1/\(fault)")
      expectRefused(lost, 502, "outcome_unknown", retryable: false)
      let again = try await rig.order("k", path: "/v1/\(fault)")
      #expect(again.problem?.code == "outcome_unknown")
      // The next one finds a way again.
      expectExecuted(try await rig.order("after"))
      #expect(try await HTTP2Backend.runs(of: "k", at: backend) == 1)
    }
  }

  /// This backend lies: it ran what it says that it did not take. RFC 9113, section 8.7, lets it be believed.
  @Test(arguments: ["refused", "goaway"], [false, true])
  func `a request that the backend states it did not process is released`(fault: String, isSecure: Bool)
    async throws
  {
    try await HTTP2Backend.run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      for runs in 1...2 {
        let refused = try await rig.order("k", path: "/v1/\(fault)")
        expectRefused(refused, 502, "upstream_unreachable", retryable: true)
        #expect(try await HTTP2Backend.runs(of: "k", at: backend, atLeast: runs) == runs)
      }
      expectExecuted(try await rig.order("after"))
    }
  }

  @Test(arguments: [false, true])
  func `a request that is refused while its body waits for the window is released`(isSecure: Bool)
    async throws
  {
    try await HTTP2Backend.run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, _ in
      let large = String(repeating: "x", count: 300 << 10)
      for _ in 1...2 {
        let refused = try await rig.order("k", body: large, path: "/v1/spurned")
        expectRefused(refused, 502, "upstream_unreachable", retryable: true)
      }
      expectExecuted(try await rig.order("after", body: large))
    }
  }

  @Test(arguments: ["refused", "stopped", "short", "cut", "half"])
  func `a passed-through response is not whole if its stream was not`(fault: String) async throws {
    try await HTTP2Backend.run { rig, _ in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(HTTPClient.request("POST", "/\(fault)", [], body: "{}"))
      let response = try? await client.response()
      #expect(response == nil || response?.status == 502, "\(String(describing: response))")
    }
  }

  @Test(arguments: ["early", "measured", "plain"], [false, true])
  func `a whole response counts before the request was fully sent`(path: String, isSecure: Bool) async throws
  {
    try await HTTP2Backend.run(isSecure: isSecure) { rig, _ in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send("POST /\(path) HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nsome")
      let response = try await client.response()
      #expect(response.status == 200)
      #expect(response.text == "early")
    }
  }

  @Test(arguments: ["early", "measured", "plain"], [false, true])
  func `a whole response to a claimed request counts before the request was fully sent`(
    path: String, isSecure: Bool
  ) async throws {
    try await HTTP2Backend.run(isSecure: isSecure) { rig, _ in
      // More than a stream's first window: the backend opens no more of it.
      let fields = Rig.fields(key: "k")
      let body = String(repeating: "x", count: 200_000)
      let request = HTTPClient.request("POST", "/v1/\(path)", fields, body: body)
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(request)
      let first = try await client.response()
      expectExecuted(first, 200)
      #expect(first.text == "early")
      try await client.send(request)
      expectReplayed(try await client.response(), of: first)
    }
  }

  @Test func `large bodies in both directions need little memory`() async throws {
    var backend = try await SecureBackend()
    backend.http2 = "auto"
    try await backend.run(within: .seconds(120)) { rig in
      let size = 128 << 20
      rig.backend.on("/open") { _ in Reply(200, [], content: .filler(size), framing: .chunked) }
      let download = try await RawClient(port: rig.semel.ports.proxy)
      try await download.setReading(false)
      try await download.send("GET /open HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
      #expect(try await rig.backend.stalled() < size)
      #expect(try rig.semel.memory("VmHWM") < 100 << 10)
      download.inbox.withValue { $0.isCounting = true }
      try await download.setReading(true)
      try await download.closedByPeer(within: .seconds(60))
      #expect(download.inbox.value.total > size)

      let upload = try await RawClient(port: rig.semel.ports.proxy)
      try await upload.send("PUT /up HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
      let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
      for _ in 0..<128 { try await upload.send(piece) }
      #expect(try await upload.response(to: "PUT", within: .seconds(60)).status == 201)
      #expect(rig.backend.requests.last?.bodyLength == size)
      #expect(rig.backend.requests.allSatisfy { $0["X-Protocol"] == "HTTP/2.0" })
      #expect(try rig.semel.memory("VmHWM") < 100 << 10)
    }
  }
}
