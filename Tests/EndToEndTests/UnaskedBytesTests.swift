import TestSupport
import Testing

/// A backend that says what nobody asked for: on no kind of connection does it become part of a response.
struct UnaskedBytesTests {
  enum Wire: String, CaseIterable, Sendable {
    case plain, tls12, tls13

    var isEncrypted: Bool { self != .plain }
  }

  /// Runs Semel before the backend; `body` is given the backend's process.
  private func run(
    _ wire: Wire, _ configuration: Configuration = Configuration(),
    _ body: @escaping @Sendable (Rig, ManagedProcess) async throws -> Void
  ) async throws {
    let port = FreePort.find()
    let certificates = try await Certificates()
    let pair = try await certificates.server()
    let secure = [pair.certificate, pair.key, wire == .tls12 ? "1.2" : "1.3"]
    let backend = try await Python.serve("unasked_backend", ["\(port)"] + (wire.isEncrypted ? secure : []))
    var configuration = configuration
    configuration.top["workers"] = "1"
    configuration.upstream["url"] = "'\(wire.isEncrypted ? "https" : "http")://127.0.0.1:\(port)'"
    if wire.isEncrypted { configuration.upstream["tls"] = "{ca: \(certificates.authority)}" }
    try await Rig.run(configuration) { rig in try await body(rig, backend) }
    withExtendedLifetime(certificates) {}
  }

  private static func expectOwn(
    _ response: ReceivedResponse, _ key: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(response.text == #"{"key":"\#(key)"}"#, "\(response)", sourceLocation: sourceLocation)
  }

  @Test(arguments: Wire.allCases, ["late", "leaving", "glued", "tail"])
  func `everybody gets the response to their own request`(wire: Wire, way: String) async throws {
    try await run(wire) { rig, backend in
      for method in ["GET", "POST"] {
        let before = try await rig.semel.client.send(method, "/open/\(way)", [("X-Name", "eve")])
        Self.expectOwn(before, "eve")
        _ = try await backend.lines(atLeast: method == "GET" ? 1 : 2) { $0 == "sent /open/\(way)" }
        for name in ["alice", "bob", "carol"] {
          let key = "\(name)-\(method)"
          let first = try await rig.order(key, caller: "Bearer \(name)")
          expectExecuted(first)
          Self.expectOwn(first, key)
          expectReplayed(try await rig.order(key, caller: "Bearer \(name)"), of: first)
          Self.expectOwn(try await rig.semel.client.send("GET", "/open", [("X-Name", name)]), name)
        }
      }
    }
  }

  @Test(arguments: [Wire.plain, .tls13], ["late", "leaving", "glued", "tail"])
  func `connections that end for unrequested bytes are counted, and logged once a minute`(
    wire: Wire, way: String
  )
    async throws
  {
    try await run(wire) { rig, _ in
      let (name, label) = ("semel_upstream_stray_closes_total", #"upstream="orders""#)
      #expect(try await rig.semel.admin.send("GET", "/metrics").text.contains("\n\(name){\(label)} 0\n"))
      for number in 1...2 {
        _ = try await rig.semel.client.send("GET", "/open/\(way)", [("X-Name", "eve")])
        try await rig.semel.counter(name, label: label, isAtLeast: number)
      }
      Self.expectOwn(try await rig.semel.client.send("GET", "/open", [("X-Name", "bob")]), "bob")
      try await rig.semel.counter(name, label: label, becomes: 2)
      try await rig.semel.process.line(containing: "bytes that no request asked for")
      let entries = rig.semel.process.output.split(separator: "\n").filter {
        $0.contains("no request asked for")
      }
      #expect(entries.count == 1)
      #expect(entries.first?.contains(#""level":"warning""#) == true, "\(entries)")
      #expect(entries.first?.contains(#""upstream":"orders""#) == true, "\(entries)")
    }
  }

  /// The worst moment: both lie there when Semel looks again, the next request and what nobody asked for.
  @Test(arguments: Wire.allCases, ["GET", "POST"])
  func `bytes that arrive before a request is sent are not its response`(wire: Wire, method: String)
    async throws
  {
    try await run(wire) { rig, backend in
      Self.expectOwn(try await rig.semel.client.send("GET", "/open/late", [("X-Name", "eve")]), "eve")
      let client = try await RawClient(port: rig.semel.ports.proxy)
      rig.semel.freeze()
      try await client.send(
        HTTPClient.request(method, method == "GET" ? "/open" : "/v1/orders", Rig.fields(key: "bob")))
      try await backend.line(containing: "sent /open/late")
      rig.semel.thaw()
      Self.expectOwn(try await client.response(), "bob")
    }
  }

  @Test(arguments: [Wire.tls12, .tls13])
  func `connections of TLS are reused`(wire: Wire) async throws {
    try await run(wire) { rig, backend in
      for number in 0..<20 { expectExecuted(try await rig.order("k\(number)")) }
      #expect(try await backend.lines(atLeast: 1) { $0.hasPrefix("connection") } == 1)
    }
  }

  @Test func `a late session ticket ends no connection`() async throws {
    try await run(.tls13) { rig, backend in
      for number in 1...3 {
        expectExecuted(try await rig.order("t\(number)", path: "/v1/ticket"))
        _ = try await backend.lines(atLeast: number) { $0 == "sent /v1/ticket" }
        Self.expectOwn(try await rig.order("k\(number)"), "k\(number)")
      }
      #expect(try await backend.lines(atLeast: 1) { $0.hasPrefix("connection") } == 1)
    }
  }

  @Test func `an unread session ticket is read before the next request`() async throws {
    try await run(.tls13, Configuration(upstream: ["max_connections": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before", path: "/v1/ticket"))
      let client = try await RawClient(port: rig.semel.ports.proxy)
      rig.semel.freeze()
      try await client.send(Rig.orderText("k"))
      try await backend.line(containing: "sent /v1/ticket")
      rig.semel.thaw()
      let response = try await client.response()
      expectExecuted(response)
      #expect(response["X-Connection"] == "1")
    }
  }

  @Test(arguments: Wire.allCases)
  func `a response that may have been cut is unknown, and one that the backend ended is not`(wire: Wire)
    async throws
  {
    try await run(wire) { rig, _ in
      let short = try await rig.order("s", path: "/v1/short")
      if wire.isEncrypted {
        expectRefused(short, 502, "outcome_unknown", retryable: false)
      } else {
        expectRefused(short, 409, "response_not_kept", retryable: false)
      }
      let whole = try await rig.order("w", path: "/v1/whole")
      expectExecuted(whole)
      expectReplayed(try await rig.order("w", path: "/v1/whole"), of: whole)
      let closed = try await rig.order("c", path: "/v1/closed")
      #expect(closed.status == 200 && closed.text == "all of it", "\(closed)")
      let again = try await rig.order("c", path: "/v1/closed")
      if wire.isEncrypted {
        // By the mark with which TLS ends, nothing is missing.
        expectReplayed(again, of: closed)
      } else {
        expectRefused(again, 409, "response_not_kept", retryable: false)
      }
      for path in wire.isEncrypted ? ["aborted", "ended"] : ["aborted"] {
        let response = try await rig.order(path, path: "/v1/\(path)")
        expectRefused(response, 502, "outcome_unknown", retryable: false)
        let passed = try? await rig.semel.client.send("GET", "/open/\(path)")
        #expect(passed == nil || passed?.status == 502, "\(String(describing: passed))")
      }
    }
  }

  @Test(arguments: Wire.allCases)
  func `trailers are filtered, and a length among them is dropped`(wire: Wire) async throws {
    try await run(wire) { rig, _ in
      let first = try await rig.order("t", path: "/v1/trailers")
      expectExecuted(first, 200)
      #expect(
        first.text == "ok" && first.trailers.map(\.name) == ["X-Sum", "Transfer-Mode"], "\(first.trailers)")
      let again = try await rig.order("t", path: "/v1/trailers")
      expectReplayed(again, of: first)
      #expect(again.trailers.map(\.name) == ["X-Sum", "Transfer-Mode"], "\(again.trailers)")
      let control = try await rig.order("c", path: "/v1/control")
      expectRefused(control, 409, "response_not_kept", retryable: false)
      #expect(control.problem?.originalStatus == 200)
    }
  }

  @Test(arguments: [Wire.plain, .tls13])
  func `an authenticated connection serves no other client`(wire: Wire) async throws {
    try await run(wire) { rig, backend in
      let fields = [("X-Name", "n")]
      func connection(_ path: String, _ more: [(String, String)] = []) async throws -> Int {
        let response = try await rig.semel.client.send("GET", path, fields + more)
        Self.expectOwn(response, "n")
        return try #require(response["X-Connection"].flatMap { Int($0) })
      }
      let first = try await connection("/open")
      #expect(try await connection("/open") == first)
      #expect(try await connection("/open/negotiate") == first)
      let second = try await connection("/open")
      #expect(second > first)
      let third = try await connection("/open", [("Authorization", "negotiate YII=")])
      #expect(try await connection("/open") > third)
    }
  }
}
