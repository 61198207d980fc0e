import TestSupport
import Testing

/// Abuses that HTTP/2 lets a client commit, and the limits at which Semel ends them.
struct HTTP2LimitTests {
  /// ENHANCE_YOUR_CALM (RFC 9113, section 7).
  private static let calm = 11

  /// Runs steps that end with the connection's end, and holds that others are served.
  private func expectEnd(
    _ limits: String, of steps: [[HTTP2Script.Argument]], code: Int? = Self.calm
  ) async throws {
    try await Rig.run(Configuration(top: ["limits": limits])) { rig in
      let report = try await HTTP2Script.run(rig, steps + [["end"]])
      #expect(report.closed)
      // The connection's reset may overtake the reason if bytes were under way.
      if let code, let goaway = report.goaways.first { #expect(goaway.code == code) }
      expectExecuted(try await rig.order("k"))
    }
  }

  @Test func `rapid resets end the connection`() async throws {
    try await expectEnd("{}", of: [["flood", "reset", 1000]])
  }

  @Test func `streams beyond the limit without end are a flood`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{http2_max_streams: 3}"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let steps = [1, 3, 5].map { number -> [HTTP2Script.Argument] in
        ["open", .number(number), HTTP2Script.order("k\(number)"), true]
      }
      // A client that does not know the limit yet may open a thousand and ten times the limit.
      let within = try await HTTP2Script.run(rig, steps + [["flood", "surplus", 1000], ["ping"]])
      #expect(within.goaways.isEmpty && !within.closed)
      let beyond = try await HTTP2Script.run(rig, steps + [["flood", "surplus", 1300], ["end"]])
      #expect(beyond.closed)
      if let goaway = beyond.goaways.first { #expect(goaway == HTTP2Script.GoAway(code: Self.calm, last: 5)) }
      gate.open()
    }
  }

  @Test func `streams that were refused by hundreds end no request when their bodies come`() async throws {
    try await Rig.run { rig in
      let numbers = (0..<500).map { 2 * $0 + 1 }
      let streams = numbers.map { HTTP2Script.Argument.list([.number($0), HTTP2Script.order("k\($0)")]) }
      let taken = numbers.prefix(100)
      let report = try await HTTP2Script.run(
        rig, [["burst", .list(streams)]] + taken.map { ["response", .number($0)] })
      #expect(report.goaways.isEmpty && !report.closed)
      for number in taken { #expect(try report[number].status == 201) }
      for number in numbers.dropFirst(100) { #expect(try report[number].reset == 7) }
      #expect(rig.backend.requests.count == 100)
    }
  }

  /// Frames that advance no request.
  private static let overhead = [
    "ping", "settings", "window_update", "priority", "priority_update", "altsvc", "origin", "unknown",
  ]

  @Test(arguments: overhead)
  func `a flood of useless frames ends the connection, and GOAWAY names the last stream accepted`(
    kind: String
  ) async throws {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { $0.number == 1 ? Reply() : Reply(gate: gate) }
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, HTTP2Script.order("ended"), true], ["response", 1],
          ["open", 3, HTTP2Script.order("running"), true],
          // Beyond what two requests and their responses account for.
          ["flood", .text(kind), 1100], ["end"],
        ])
      // A client may send the streams above it again.
      #expect(report.goaways == [HTTP2Script.GoAway(code: Self.calm, last: 3)])
      #expect(try report[3].status == 0)
      try await rig.backend.arrived(2)
      gate.open()
      try await expectReplayed("running", by: rig)
      #expect(rig.backend.requests.count == 2)
    }
  }

  /// NIO's HPACK decoder makes this an error of the connection. So it stays honest about the streams that run.
  @Test func `a field with an empty name ends the connection, and GOAWAY names the last stream accepted`()
    async throws
  {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, HTTP2Script.order("running"), true], ["nameless", 3, HTTP2Script.order("nameless")],
          ["end"],
        ])
      // COMPRESSION_ERROR
      #expect(report.goaways == [HTTP2Script.GoAway(code: 9, last: 1)])
      try await rig.backend.arrived(1)
      gate.open()
      try await expectReplayed("running", by: rig)
      expectExecuted(try await rig.order("nameless"))
      #expect(rig.backend.requests.count == 2)
    }
  }

  /// A key that a script has used goes on to its outcome, though its connection has ended.
  private func expectReplayed(_ key: String, by rig: Rig) async throws {
    let report = try await HTTP2Script.run(
      rig, [["open", 1, HTTP2Script.order(key), true], ["response", 1]])
    #expect(try report[1].status == 201)
    #expect(try report[1].fields["idempotency-status"] == "replayed")
  }

  @Test func `two WINDOW_UPDATE for each DATA, and a PRIORITY_UPDATE for each request, are no flood`()
    async throws
  {
    // In frames of 16 KiB, twice as many updates as a client may send unexplained.
    let size = 16 << 20
    try await Rig.run(Configuration(route: ["idempotency": "off"])) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(200, [], content: .filler(size)) }
      var steps: [[HTTP2Script.Argument]] = [
        ["update_each"], ["open", 1, HTTP2Script.order(), true], ["response", 1],
      ]
      for stream in stride(from: 3, to: 83, by: 2) {
        steps += [
          ["priority_update", .number(stream)],
          ["open", .number(stream), HTTP2Script.order(path: "/v1/small"), true],
          ["response", .number(stream)],
        ]
      }
      let report = try await HTTP2Script.run(rig, steps)
      #expect(report.goaways.isEmpty && !report.closed)
      #expect(try report[1].length == size)
    }
  }

  @Test func `a PING for each DATA is no flood`() async throws {
    let size = 32 << 20
    try await Rig.run(Configuration(route: ["idempotency": "off"])) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(200, [], content: .filler(size)) }
      let report = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order(), true], ["ping_each", 1, 1200], ["response", 1]])
      #expect(report.goaways.isEmpty && !report.closed)
      #expect(try report[1].length == size)
    }
  }

  @Test func `a malformed request gets 400, and its stream ends with an error`() async throws {
    try await Rig.run { rig in
      let upper = HTTP2Script.order("upper", [["X-Upper", "y"]])
      let short = HTTP2Script.order("short", [["content-length", "5"]])
      let large = HTTP2Script.order("large", [["x-large", String(repeating: "x", count: 70_000)]])
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, upper, true], ["was_reset", 1], ["open", 3, upper, false], ["was_reset", 3],
          ["open", 5, short, false], ["data", 5, "{}", true], ["was_reset", 5],
          // Well formed, and refused: its stream ends in order.
          ["open", 7, large, true], ["response", 7], ["open", 9, HTTP2Script.order("k"), true],
          ["response", 9],
        ])
      for stream in [1, 3, 5] {
        #expect(try report[stream].status == 400)
        #expect(try report[stream].length > 0)
        #expect(try report[stream].reset == 1)
      }
      #expect(try report[7].status == 431 && report[7].ended)
      #expect(try report[9].status == 201)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a head in endless pieces ends the connection`() async throws {
    try await expectEnd("{header_bytes: 16KiB}", of: [["flood", "continuation", 500]])
  }

  @Test func `empty frames without end end the connection`() async throws {
    try await expectEnd("{}", of: [["open", 1, HTTP2Script.order("x"), false], ["flood", "empty", 50]])
  }

  @Test func `a head beyond the limit gets 431, and harms no other stream`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{header_bytes: 8KiB}"])) { rig in
      let large = HTTP2Script.order("x", [["x-large", String(repeating: "x", count: 10_000)]])
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, HTTP2Script.order("k"), false], ["open", 3, large, true], ["response", 3],
          ["data", 1, "{}", true], ["response", 1],
        ])
      #expect(try report[3].status == 431)
      #expect(try report[1].status == 201)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a field beyond the limit of a line gets 431, and harms no other stream`() async throws {
    try await Rig.run { rig in
      func order(_ key: String, _ size: Int) -> HTTP2Script.Argument {
        HTTP2Script.order(key, [["x-large", String(repeating: "x", count: size)]])
      }
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, order("k", 16_300), true], ["open", 3, order("l", 16_400), true], ["response", 1],
          ["response", 3],
        ])
      #expect(try report[1].status == 201)
      #expect(try report[3].status == 431 && report[3].body.contains("header_too_large"))
      #expect(rig.backend.requests.count == 1)
    }
  }

  /// curl sends its first request together with the preface.
  @Test func `the first request may have a head of more than 16 KiB`() async throws {
    try await Rig.run { rig in
      let fields = (0..<5).flatMap { ["--header", "X-\($0): \(String(repeating: "a", count: 4000))"] }
      let curl = try ManagedProcess(
        [
          "curl", "--silent", "--show-error", "--include", "--http2-prior-knowledge", "--header",
          "Idempotency-Key: k", "--header", "Authorization: Bearer alice", "--json", "{}",
        ] + fields + ["http://127.0.0.1:\(rig.semel.ports.proxy)/v1/orders"])
      #expect(try await curl.exit() == .code(0), "\(curl.errors)")
      #expect(curl.output.hasPrefix("HTTP/2 201"), "\(curl.output)")
      #expect(rig.backend.requests.first?["X-4"]?.utf8.count == 4000)
    }
  }

  @Test func `a head of more than twice the limit ends the connection`() async throws {
    let large = HTTP2Script.order("x", [["x-large", String(repeating: "x", count: 40_000)]])
    try await expectEnd("{header_bytes: 8KiB}", of: [["open", 1, large, true]], code: 1)
  }

  @Test func `resetting streams does not evade the limit of streams`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{http2_max_streams: 3}"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      func open(_ stream: Int) -> [[HTTP2Script.Argument]] {
        [["open", .number(stream), HTTP2Script.order("k\(stream)"), true]]
      }
      func hangUp(_ stream: Int) -> [[HTTP2Script.Argument]] { open(stream) + [["reset", .number(stream)]] }
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        hangUp(1) + hangUp(3) + hangUp(5) + open(7) + [["response", 7]])
      let report = try await script.report()
      // REFUSED_STREAM: not processed, and safe to try again.
      #expect(try report[7].reset == 7)
      #expect(try await rig.backend.arrived(3).count == 3)
      gate.open()
    }
  }

  @Test func `a client that sends no preface, or nothing more, is disconnected`() async throws {
    let limits = "{header_timeout: 4s, idle_timeout: 4s}"
    try await Rig.run(Configuration(top: ["limits": limits])) { rig in
      let silent = try await HTTP2Script.run(rig, [["end"]])
      #expect(silent.closed)
      #expect(silent.goaways.first?.code == 0)
      let idle = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order("k"), true], ["response", 1], ["end"]])
      #expect(try idle[1].status == 201)
      #expect(idle.closed)
      #expect(idle.goaways.last == HTTP2Script.GoAway(code: 0, last: 1))
    }
  }

  @Test func `a missing body times out as it does for HTTP 1`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{body_timeout: 1s}"])) { rig in
      let report = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order("k"), false], ["data", 1, "{", false], ["response", 1]])
      #expect(try report[1].status == 408)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `an invalid preface of HTTP 2 is a bad request`() async throws {
    try await Rig.run { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send("PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n")
      #expect(try await client.response().status >= 400)
      // Not within a connection of HTTP/1.1 either.
      let other = try await RawClient(port: rig.semel.ports.proxy)
      try await other.send(Rig.orderText("k") + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
      #expect(try await other.response().status == 201)
      #expect(try await other.response().status == 400)
      let broken = try await RawClient(port: rig.semel.ports.proxy)
      try await broken.send("PRI * HTTP/2.0\r\n\r\nGET / HTTP/1.1\r\n\r\n")
      try await broken.closedByPeer()
    }
  }

  @Test func `a connection that fails with its first bytes leaves no request behind`() async throws {
    let body = String(repeating: "x", count: 300_000)
    let backend = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n\(body)")
      connection.readToEnd()
    }
    try await Rig.run(Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      var bytes = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + Self.frame(4, stream: 0, [])
      // `GET http://a/other` by the static table.
      let head: [UInt8] = [0x82, 0x86, 0x41, 1] + Array("a".utf8) + [0x44, 6] + Array("/other".utf8)
      for stream in [1, 3, 5] as [UInt8] { bytes += Self.frame(1, flags: 5, stream: stream, head) }
      // DATA belongs to a stream.
      bytes += Self.frame(0, stream: 0, [0])
      try await client.send(bytes)
      try await client.closedByPeer()
      try await rig.semel.counter("semel_in_flight_requests", becomes: 0)
      try await rig.semel.counter("semel_body_bytes", becomes: 0)
      try await rig.semel.counter("semel_open_connections", becomes: 0)
    }
  }

  private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
    [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
  }
}
