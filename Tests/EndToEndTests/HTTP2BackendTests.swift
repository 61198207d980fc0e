import TestSupport
import Testing

/// A backend that speaks HTTP/2, frame by frame as a script has it: under TLS by ALPN, and in clear by prior knowledge.
struct HTTP2BackendTests {
  private func run(
    isSecure: Bool = true, _ configuration: Configuration = Configuration(), saying: [String] = [],
    _ body: @escaping @Sendable (Rig, ManagedProcess) async throws -> Void
  ) async throws {
    let port = FreePort.find()
    let certificates = try await Certificates()
    let pair = try await certificates.server()
    let backend = try await Python.serve(
      "http2_backend", ["\(port)"] + (isSecure ? [pair.certificate, pair.key] : []) + saying)
    var configuration = configuration
    configuration.upstream["url"] = "'\(isSecure ? "https" : "http")://127.0.0.1:\(port)'"
    configuration.upstream["http2"] = isSecure ? "auto" : "prior_knowledge"
    if isSecure { configuration.upstream["tls"] = "{ca: \(certificates.authority)}" }
    try await Rig.run(configuration) { rig in try await body(rig, backend) }
    withExtendedLifetime(certificates) {}
  }

  /// How often the backend ran a key.
  /// How often the backend ran a key: so often at least, since what it says comes by another way than its answers.
  private static func runs(
    of key: String, at backend: ManagedProcess, atLeast count: Int = 1
  ) async throws -> Int {
    try await backend.lines(atLeast: count) {
      $0.hasPrefix("ran ") && $0.split(separator: " ")[3] == key
    }
  }

  @Test(arguments: [true, false])
  func `a keyed request runs once and is replayed`(isSecure: Bool) async throws {
    try await run(isSecure: isSecure) { rig, backend in
      let first = try await rig.order("k")
      expectExecuted(first)
      #expect(first.text == #"{"order":1}"#)
      expectReplayed(try await rig.order("k"), of: first)
      #expect(try await Self.runs(of: "k", at: backend) == 1)
      #expect(backend.output.contains("ran POST /v1/orders k 15\n"))
    }
  }

  @Test(arguments: [true, false])
  func `a streamed body arrives whole, with its length and without`(isSecure: Bool) async throws {
    try await run(isSecure: isSecure) { rig, backend in
      for framing in ["Content-Length: 300000", "Transfer-Encoding: chunked"] {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send("POST /open/\(framing.count) HTTP/1.1\r\nHost: h\r\n\(framing)\r\n\r\n")
        for _ in 0..<3 {
          let piece = String(repeating: "x", count: 100_000)
          try await client.send(framing.hasPrefix("C") ? piece : "186A0\r\n\(piece)\r\n")
        }
        if framing.hasPrefix("T") { try await client.send("0\r\n\r\n") }
        #expect(try await client.answer().status == 201)
        try await backend.line(containing: "ran POST /open/\(framing.count) - 300000")
      }
    }
  }

  @Test(arguments: [true, false])
  func `trailers reach clients of both versions, are recorded and replayed`(isSecure: Bool) async throws {
    try await run(isSecure: isSecure) { rig, _ in
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
            ["open", 1, HTTP2Script.order("k2", path: path), true], ["answer", 1],
            ["open", 3, HTTP2Script.order(path: String(path.dropFirst(3))), true], ["answer", 3],
          ])
        for stream in [1, 3] {
          #expect(try report[stream].body == "body")
          #expect(try report[stream].trailers["x-sum"] != nil)
        }
      }
    }
  }

  @Test(arguments: [true, false])
  func `answers without a body are framed right`(isSecure: Bool) async throws {
    try await run(isSecure: isSecure) { rig, _ in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let cases: [(String, String, Int, String?)] = [
        ("HEAD", "/v1/head", 200, "5"), ("DELETE", "/v1/empty", 204, nil), ("GET", "/v1/unchanged", 304, nil),
      ]
      for key in ["k", "k", nil] {
        for (method, path, status, length) in cases {
          let fields = Rig.fields(key: key)
          let target = key == nil ? String(path.dropFirst(3)) : path
          try await client.send(HTTPClient.request(method, target, fields))
          let answer = try await client.answer(to: method)
          #expect(answer.status == status)
          #expect(answer["Content-Length"] == length, "\(method) \(answer.fields)")
          #expect(answer["Transfer-Encoding"] == nil)
        }
      }
    }
  }

  @Test func `many keys at once share few connections`() async throws {
    try await run { rig, backend in
      try await withThrowingTaskGroup(of: Answer.self) { group in
        for number in 0..<80 { group.addTask { try await rig.order("k\(number)") } }
        for try await answer in group { expectExecuted(answer) }
      }
      for number in 0..<80 { #expect(try await Self.runs(of: "k\(number)", at: backend) == 1) }
      // One of each worker.
      #expect(backend.output.split(separator: "\n").count { $0.hasPrefix("connection") } <= 2)
    }
  }

  private static func connections(to backend: ManagedProcess, atLeast count: Int) async throws -> Int {
    try await backend.lines(atLeast: count) { $0.hasPrefix("connection") }
  }

  @Test(arguments: [1, 3])
  func `a backend that takes few streams gets no more at once`(connections: Int) async throws {
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["max_connections": "\(connections)", "connect_timeout": "10s"])
    try await run(configuration, saying: ["streams=1"]) { rig, backend in
      try await withThrowingTaskGroup(of: Answer.self) { group in
        for number in 0..<30 { group.addTask { try await rig.order("k\(number)") } }
        for try await answer in group { expectExecuted(answer) }
      }
      for number in 0..<30 { #expect(try await Self.runs(of: "k\(number)", at: backend) == 1) }
      #expect(try await Self.connections(to: backend, atLeast: 1) <= connections)
    }
  }

  @Test(arguments: [true, false])
  func `a connection that the backend leaves carries its streams to their end`(isSecure: Bool) async throws {
    try await run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      async let held = rig.order("held", path: "/v1/held")
      try await backend.line(containing: "ran POST /v1/held")
      expectExecuted(try await rig.order("gone", path: "/v1/gone"))
      expectExecuted(try await held)
      expectExecuted(try await rig.order("after"))
      #expect(try await Self.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test func `a request that nobody waits for any more is reset alone`() async throws {
    try await run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      _ = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order(path: "/begun"), true], ["bytes", 1, 4], ["reset", 1]])
      try await backend.line(containing: "reset /begun 8")
      expectExecuted(try await rig.order("after"))
      #expect(try await Self.connections(to: backend, atLeast: 1) == 1)
    }
  }

  @Test func `where no body is taken, no claimed request with one is begun`() async throws {
    let configuration = Configuration(top: ["workers": "1"], upstream: ["connect_timeout": "500ms"])
    try await run(configuration, saying: ["window=0"]) { rig, backend in
      for number in 0..<3 {
        expectRefused(try await rig.order("k\(number)"), 502, "upstream_unreachable", retryable: true)
      }
      #expect(try await rig.semel.client.send("GET", "/open").status == 200)
      #expect(!backend.output.contains("reset"))
      #expect(try await Self.connections(to: backend, atLeast: 1) == 1)
    }
  }

  @Test func `where a connection takes no more of bodies, a claimed one goes by another`() async throws {
    try await run(isSecure: false, Configuration(top: ["workers": "1"]), saying: ["mean=1"]) { rig, backend in
      expectExecuted(try await rig.order("before"))
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send("PUT /open HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n")
      try await client.send(String(repeating: "x", count: 100_000))
      for number in 0..<3 { expectExecuted(try await rig.order("k\(number)", within: .seconds(3))) }
      #expect(try await rig.semel.client.send("GET", "/passed").status == 201)
      #expect(try await Self.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test func `a body that is stuck is waited for no longer than its response would be`() async throws {
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["response_timeout": "2s", "settle": "1s"])
    // The first piece of 64 KiB leaves, and no other.
    try await run(configuration, saying: ["window=70000"]) { rig, backend in
      let began = ContinuousClock.now
      let body = String(repeating: "x", count: 200_000)
      expectRefused(try await rig.order("k", body: body), 504, "outcome_unknown", retryable: true)
      #expect(ContinuousClock.now - began < .milliseconds(3500))
      // Nothing was heard meanwhile.
      try await backend.line(containing: "closed 1")
    }
  }

  @Test(arguments: [true, false])
  func `a connection that has fallen silent gets no more requests`(isSecure: Bool) async throws {
    try await run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      let lost = Task { try? await rig.order("k", path: "/v1/silent") }
      try await backend.line(containing: "pinged 1")
      for number in 0..<3 { expectExecuted(try await rig.order("k\(number)", within: .seconds(3))) }
      #expect(try await Self.connections(to: backend, atLeast: 2) == 2)
      lost.cancel()
    }
  }

  @Test func `a connection of which nothing was heard within a time-out is left`() async throws {
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["response_timeout": "500ms", "settle": "10s"])
    try await run(configuration) { rig, backend in
      expectExecuted(try await rig.order("before"))
      expectRefused(
        try await rig.order("k", path: "/v1/silent"), 504, "outcome_unknown", retryable: true)
      for number in 0..<3 { expectExecuted(try await rig.order("k\(number)")) }
      #expect(try await Self.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test func `a backend that answers pings keeps its connection however slow it is`() async throws {
    let configuration = Configuration(top: ["workers": "1"])
    try await run(configuration) { rig, backend in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(HTTPClient.request("GET", "/slow"))
      try await backend.line(containing: "pinged 1")
      expectExecuted(try await rig.order("k"))
      #expect(try await Self.connections(to: backend, atLeast: 1) == 1)
    }
  }

  @Test(arguments: ["late", "ahead"], [true, false])
  func `what nobody asked for is nobody's response`(way: String, isSecure: Bool) async throws {
    try await run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before", path: "/v1/\(way)"))
      let client = try await RawClient(port: rig.semel.ports.proxy)
      rig.semel.freeze()
      try await client.send(Rig.orderText("frozen"))
      try await backend.line(containing: "said /v1/\(way)")
      rig.semel.thaw()
      let frozen = try await client.answer()
      #expect(!frozen.text.contains("nobody"), "\(frozen)")
      for name in ["alice", "bob", "carol"] {
        let first = try await rig.order(name)
        expectExecuted(first)
        #expect(first.text.hasPrefix(#"{"order":"#))
      }
    }
  }

  @Test func `a connection that somebody authenticates serves nobody else`() async throws {
    try await run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      func connection(_ path: String, _ more: [(String, String)] = []) async throws -> Int {
        let answer = try await rig.semel.client.send("GET", path, more)
        return try #require(answer["X-Connection"].flatMap { Int($0) })
      }
      let first = try await connection("/passed")
      let own = try await connection("/passed", [("Authorization", "NTLM abc")])
      #expect(own != first)
      #expect(try await connection("/passed") == first)
      #expect(try await connection("/negotiate") == first)
      let next = try await connection("/passed")
      #expect(next != first && next != own)
    }
  }

  @Test func `a backend that leaves for an error is not believed in what it took`() async throws {
    try await run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      expectRefused(try await rig.order("k", path: "/v1/calm"), 502, "outcome_unknown", retryable: true)
      let again = try await rig.order("k", path: "/v1/calm")
      #expect(again.problem?.code == "outcome_unknown")
      #expect(try await Self.runs(of: "k", at: backend) == 1)
      expectExecuted(try await rig.order("after"))
    }
  }

  /// Else its head would leave at some later time, maybe when its claim is somebody else's.
  @Test func `a claimed request does not wait behind what cannot leave`() async throws {
    try await run(isSecure: false, Configuration(top: ["workers": "1"]), saying: ["window=1000000000"]) {
      rig, backend in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let size = 24 << 20
      try await client.send("PUT /stuck HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
      let upload = Task { try await client.send([UInt8](repeating: UInt8(ascii: "x"), count: size)) }
      try await backend.line(containing: "stuck")
      // Until the kernel takes no more, and what comes waits here.
      try await rig.semel.counter("semel_body_bytes", isAtLeast: 256 << 10)
      for number in 0..<3 { expectExecuted(try await rig.order("k\(number)", within: .seconds(3))) }
      #expect(try await Self.connections(to: backend, atLeast: 2) == 2)
      try await upload.value
      #expect(try await client.answer(to: "PUT").status == 201)
    }
  }

  /// NIO would fail the connection with all that is on it.
  @Test func `a head that does not fit a frame fails alone`() async throws {
    try await run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      async let held = rig.order("held", path: "/v1/held")
      try await backend.line(containing: "ran POST /v1/held")
      for byte in ["x", "{", "\u{e9}"] {
        let value = String(repeating: byte, count: byte == "x" ? 9000 : 6000)
        let large = [("X-Large", value), ("X-Other", value)]
        expectRefused(try await rig.order("large", large), 502, "upstream_unreachable", retryable: true)
      }
      let fitting = [("X-Large", String(repeating: "x", count: 15_000))]
      expectExecuted(try await rig.order("fitting", fitting))
      expectExecuted(try await rig.order("gone", path: "/v1/gone"))
      expectExecuted(try await held)
      #expect(try await Self.connections(to: backend, atLeast: 1) == 1)
    }
  }

  @Test func `a connection goes when it was idle for long enough`() async throws {
    let configuration = Configuration(top: ["workers": "1"], upstream: ["idle_timeout": "200ms"])
    try await run(configuration) { rig, backend in
      for number in 0..<5 { expectExecuted(try await rig.order("k\(number)")) }
      #expect(try await Self.connections(to: backend, atLeast: 1) == 1)
      try await backend.line(containing: "closed 1")
      expectExecuted(try await rig.order("after"))
      #expect(try await Self.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test(arguments: [true, false])
  func `a backend that takes no streams gets no request`(isSecure: Bool) async throws {
    try await run(isSecure: isSecure, saying: ["streams=0"]) { rig, backend in
      expectRefused(try await rig.order("k"), 502, "upstream_unreachable", retryable: true)
      #expect(!backend.output.contains("ran"))
    }
  }

  @Test func `a backend that speaks no HTTP 2 gets no request`() async throws {
    try await Rig.run(Configuration(upstream: ["http2": "prior_knowledge"])) { rig in
      expectRefused(try await rig.order("k"), 502, "upstream_unreachable", retryable: true)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test(
    arguments: ["cancelled", "stopped", "short", "cut", "half", "contradicted", "malformed"], [false, true])
  func `a claimed request without a whole answer is unknown, and was sent once`(
    fault: String, isSecure: Bool
  ) async throws {
    try await run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      let lost = try await rig.order("k", path: "/v1/\(fault)")
      expectRefused(lost, 502, "outcome_unknown", retryable: true)
      let again = try await rig.order("k", path: "/v1/\(fault)")
      #expect(again.problem?.code == "outcome_unknown")
      // The next one finds a way again.
      expectExecuted(try await rig.order("after"))
      #expect(try await Self.runs(of: "k", at: backend) == 1)
    }
  }

  /// This backend lies: it ran what it says that it did not take. RFC 9113, section 8.7, lets it be believed.
  @Test(arguments: ["refused", "goaway"], [false, true])
  func `what the backend says it did not take is released`(fault: String, isSecure: Bool) async throws {
    try await run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      for runs in 1...2 {
        let refused = try await rig.order("k", path: "/v1/\(fault)")
        expectRefused(refused, 502, "upstream_unreachable", retryable: true)
        #expect(try await Self.runs(of: "k", at: backend, atLeast: runs) == runs)
      }
      expectExecuted(try await rig.order("after"))
    }
  }

  @Test(arguments: ["refused", "stopped", "short", "cut", "half"])
  func `what is passed through is never whole where its stream was not`(fault: String) async throws {
    try await run { rig, _ in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(HTTPClient.request("POST", "/\(fault)", [], body: "{}"))
      let answer = try? await client.answer()
      #expect(answer == nil || answer?.status == 502, "\(String(describing: answer))")
    }
  }

  @Test(arguments: ["early", "measured", "plain"], [false, true])
  func `a whole answer counts before the request was fully sent`(path: String, isSecure: Bool) async throws {
    try await run(isSecure: isSecure) { rig, _ in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send("POST /\(path) HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nsome")
      let answer = try await client.answer()
      #expect(answer.status == 200)
      #expect(answer.text == "early")
    }
  }

  @Test(arguments: ["early", "measured", "plain"], [false, true])
  func `so it does for a claimed request`(path: String, isSecure: Bool) async throws {
    try await run(isSecure: isSecure) { rig, _ in
      // More than a stream's first window: the backend opens no more of it.
      let fields = Rig.fields(key: "k")
      let body = String(repeating: "x", count: 200_000)
      let request = HTTPClient.request("POST", "/v1/\(path)", fields, body: body)
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(request)
      let first = try await client.answer()
      expectExecuted(first, 200)
      #expect(first.text == "early")
      try await client.send(request)
      expectReplayed(try await client.answer(), of: first)
    }
  }

  @Test func `a backend that says it leaves is followed to its next connection`() async throws {
    try await run(isSecure: true, Configuration(top: ["workers": "1"])) { rig, backend in
      for number in 0..<20 { expectExecuted(try await rig.order("k\(number)", path: "/v1/leaving")) }
      for number in 0..<20 { #expect(try await Self.runs(of: "k\(number)", at: backend) == 1) }
    }
  }

  @Test func `a large body each way leaves the memory small`() async throws {
    var backend = try await SecureBackend()
    backend.http2 = "auto"
    try await backend.run(within: .seconds(120)) { rig in
      let size = 128 << 20
      rig.backend.on("/open") { _ in Reply(200, [], content: .filler(size), framing: .chunked) }
      let download = try await RawClient(port: rig.semel.ports.proxy)
      try await download.setReading(false)
      try await download.send("GET /open HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
      try await rig.backend.arrived(1)
      // Whatever would pile up does so within this.
      try await Task.sleep(for: .seconds(2))
      #expect(try rig.semel.memory("VmHWM") < 100 << 10)
      download.inbox.withValue { $0.isCounting = true }
      try await download.setReading(true)
      try await download.closedByPeer(within: .seconds(60))
      #expect(download.inbox.value.total > size)

      let upload = try await RawClient(port: rig.semel.ports.proxy)
      try await upload.send("PUT /up HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
      let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
      for _ in 0..<128 { try await upload.send(piece) }
      #expect(try await upload.answer(to: "PUT", within: .seconds(60)).status == 201)
      #expect(rig.backend.requests.last?.bodyLength == size)
      #expect(rig.backend.requests.allSatisfy { $0["X-Protocol"] == "HTTP/2.0" })
      #expect(try rig.semel.memory("VmHWM") < 100 << 10)
    }
  }
}
