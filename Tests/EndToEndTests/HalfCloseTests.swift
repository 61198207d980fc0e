import Glibc
import TestSupport
import Testing

/// Clients that send nothing more and continue to read (a FIN of TCP): their whole requests get responses, and their
/// unfinished ones end at once, not after `body_timeout`.
struct HalfCloseTests {
  @Test(arguments: StoreKind.allCases)
  func `an unfinished order of HTTP 2 ends at once, and the others get their responses`(store: StoreKind)
    async throws
  {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "whole", gate: gate) }
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        [
          ["open", 1, HTTP2Script.order("k", [["content-length", "9"]]), false], ["data", 1, "{", false],
          ["open", 3, HTTP2Script.order("l"), false], ["data", 3, "{}", false],
          ["open", 5, HTTP2Script.order("whole"), true],
          ["half_close"], ["response", 1], ["response", 3], ["note", "over"], ["response", 5], ["end"],
        ])
      try await script.says("over")
      gate.open()
      let report = try await script.report()
      for stream in [1, 3] { #expect(try report[stream].status == 400) }
      #expect(try report[5].body == "whole")
      #expect(report.goaways.last == HTTP2Script.GoAway(code: 0, last: 5))
      #expect(rig.backend.requests.count == 1)
      // Nothing was claimed: the keys are as good as new.
      for key in ["k", "l"] { expectExecuted(try await rig.order(key, body: #"{"other":1}"#)) }
    }
  }

  @Test func `an unfinished upload of HTTP 2 fails towards its backend`() async throws {
    let hasEnded = Watched(false)
    let backend = try RawServer { connection in
      try connection.readHead()
      try connection.write("HTTP/1.1 103 Early Hints\r\n\r\n")
      connection.readToEnd()
      hasEnded.withValue { $0 = true }
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        [
          ["open", 1, HTTP2Script.order(path: "/open"), false], ["data", 1, "some", false], ["interim", 1],
          ["half_close"], ["response", 1], ["end"],
        ])
      #expect(try await script.report()[1].status == 400)
      try await hasEnded.until("the backend to be told") { $0 ? true : nil }
    }
  }

  @Test func `a half-close of HTTP 2 ends an unfinished exchange`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/open") { _ in Reply(200, [], content: .filler(10), framing: .chunked) }
      let report = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order(path: "/open"), false], ["half_close"], ["end"]])
      #expect(report.closed)
    }
  }

  @Test func `a whole upload of HTTP 1 arrives, even behind unread bytes`() async throws {
    let backend = try RawServer(receiveBuffer: 4096) { connection in
      while true {
        try connection.readRequest()
        try connection.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
      }
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      // More than the kernel holds, so that the backend's pace is Semel's.
      for size in stride(from: 6_000_000, to: 6_500_000, by: 50_000) {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        let body = String(size, radix: 16) + "\r\n" + String(repeating: "x", count: size) + "\r\n0\r\n\r\n"
        try await client.send(
          HTTPClient.request("POST", "/open", [("Transfer-Encoding", "chunked")], body: body))
        try await client.closeSending()
        #expect(try await client.response().status == 201, "\(size)")
      }
    }
  }

  @Test func `a whole upload of HTTP 2 arrives`() async throws {
    try await Rig.run { rig in
      for size in stride(from: 50_000, through: 650_000, by: 50_000) {
        let report = try await HTTP2Script.run(
          rig,
          [
            ["open", 1, HTTP2Script.order(path: "/open"), true], ["response", 1],
            ["open", 3, HTTP2Script.order(path: "/open"), false], ["upload", 3, .number(size)],
            ["data", 3, "", true], ["half_close"], ["response", 3],
          ])
        #expect(try report[3].status == 201, "\(size)")
        #expect(rig.backend.requests.last?.bodyLength == size)
      }
    }
  }

  @Test(arguments: ["", "POST /v1/orders HTTP/1.1\r\nHos"])
  func `all pipelined requests of HTTP 1 get responses, also after a half-close`(rest: String) async throws {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/slow") { _ in Reply(body: "slow", gate: gate) }
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let keys = ["k", nil, "l", "k", "l"]
      let texts = keys.map { Rig.orderText($0, path: $0 == nil ? "/open" : "/v1/orders") }
      try await client.send(Rig.orderText("s", path: "/v1/slow") + texts.joined() + rest)
      try await client.closeSending()
      // The end has arrived before the response to this request.
      expectExecuted(try await rig.order("other"))
      gate.open()
      #expect(try await client.response().text == "slow")
      var statuses: [String?] = []
      for _ in keys { statuses.append(try await client.response().idempotencyStatus) }
      #expect(statuses == ["executed", nil, "executed", "replayed", "replayed"])
      #expect(try await client.closedByPeer() == [])
      #expect(rig.backend.requests.count == 5)
    }
  }

  /// The moment from which a backend is silent for good.
  enum Silence: CaseIterable, Sendable { case atOnce, withinResponse, inTunnel }

  /// A backend that falls silent on `/quiet`, responds to anything else, and has one connection.
  private func quietBackend(
    _ silence: Silence, until end: ScriptGate = ScriptGate()
  ) throws -> (RawServer, Configuration) {
    let backend = try RawServer { connection in
      while !(try connection.readRequest().contains(" /quiet ")) {
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      }
      switch silence {
      case .atOnce: break
      case .withinResponse:
        try connection.write(
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n:ok\r\n"
        )
      case .inTunnel:
        try connection.write(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n:ok")
      }
      connection.readToEnd()
      // The end of a tunnel's one side is not that of the other.
      if silence == .inTunnel { end.pass() }
    }
    let configuration = Configuration(
      top: ["workers": "1", "limits": "{idle_timeout: 4s}"],
      upstream: [
        "url": "'http://127.0.0.1:\(backend.port)'", "max_connections": "1", "connect_timeout": "12s",
      ])
    return (backend, configuration)
  }

  @Test(arguments: Silence.allCases)
  func `who may be gone keeps no connection to a silent backend`(silence: Silence) async throws {
    let end = ScriptGate()
    let (backend, configuration) = try quietBackend(silence, until: end)
    defer { end.open() }
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let upgrade = silence == .inTunnel ? [("Connection", "Upgrade"), ("Upgrade", "echo")] : []
      try await client.send(HTTPClient.request("GET", "/quiet", upgrade))
      if silence == .atOnce {
        await backend.reached { $0.requests == 1 }
      } else {
        try await client.inbox.until("its first bytes") { $0.bytes.has(":ok") }
      }
      try await client.closeSending()
      if silence == .atOnce {
        #expect(try await client.response(to: "GET").problem?.code == "outcome_unknown")
      }
      try await client.closedByPeer()
      #expect(try await rig.semel.client.send("GET", "/next").status == 200)
      #expect(backend.tally.requests == 2)
    }
  }

  @Test func `nor does a stream of HTTP 2`() async throws {
    let (backend, configuration) = try quietBackend(.withinResponse)
    try await Rig.run(configuration) { rig in
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, HTTP2Script.order(path: "/quiet", method: "GET"), true], ["bytes", 1, 3],
          ["half_close"], ["end"],
        ])
      #expect(report.closed)
      #expect(try await rig.semel.client.send("GET", "/next").status == 200)
      #expect(backend.tally.requests == 2)
    }
  }

  @Test func `a backend that goes on to speak is listened to for longer`() async throws {
    let backend = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      for _ in 0..<6 {
        // Six of these are longer than the limit, one is not.
        usleep(900_000)
        try connection.write("1\r\n.\r\n")
      }
      try connection.write("0\r\n\r\n")
      connection.readToEnd()
    }
    let configuration = Configuration(
      top: ["limits": "{idle_timeout: 5s}"], upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(HTTPClient.request("GET", "/open"))
      try await client.closeSending()
      #expect(try await client.response(to: "GET").text == "......")
    }
  }

  @Test func `a protected request is run to its end for a client that may be gone`() async throws {
    try await Rig.run(Configuration(top: ["limits": "{idle_timeout: 200ms}"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(201, body: "whole", gate: gate) }
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k"))
      try await client.closeSending()
      try await rig.backend.arrived(1)
      // Longer than the limit.
      try await Task.sleep(for: .milliseconds(700))
      gate.open()
      let response = try await client.response()
      expectExecuted(response)
      expectReplayed(try await rig.order("k"), of: response)
    }
  }

  @Test func `an unfinished request of HTTP 1 ends at once`() async throws {
    try await Rig.run { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k").dropLast(1).description)
      try await client.closeSending()
      expectRefused(try await client.response(), 400, "bad_request", retryable: false)
      expectExecuted(try await rig.order("k", body: "{}"))
      #expect(rig.backend.requests.count == 1)
    }
  }
}
