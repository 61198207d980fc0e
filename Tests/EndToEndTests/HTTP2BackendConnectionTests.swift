import TestSupport
import Testing

/// The connections to a backend that speaks HTTP/2: how many there are, and which exchange goes by which.
struct HTTP2BackendConnectionTests {
  @Test func `many keys at once share few connections`() async throws {
    try await HTTP2Backend.run { rig, backend in
      try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for number in 0..<80 { group.addTask { try await rig.order("k\(number)") } }
        for try await response in group { expectExecuted(response) }
      }
      for number in 0..<80 { #expect(try await HTTP2Backend.runs(of: "k\(number)", at: backend) == 1) }
      // One of each worker.
      #expect(backend.output.split(separator: "\n").count { $0.hasPrefix("connection") } <= 2)
    }
  }

  @Test(arguments: [1, 3])
  func `a backend that allows few streams gets no more at once`(connections: Int) async throws {
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["max_connections": "\(connections)", "connect_timeout": "10s"])
    try await HTTP2Backend.run(configuration, saying: ["streams=1"]) { rig, backend in
      try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for number in 0..<30 { group.addTask { try await rig.order("k\(number)") } }
        for try await response in group { expectExecuted(response) }
      }
      for number in 0..<30 { #expect(try await HTTP2Backend.runs(of: "k\(number)", at: backend) == 1) }
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 1) <= connections)
    }
  }

  @Test(arguments: [true, false])
  func `a connection after GOAWAY carries its streams to their end`(isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      async let held = rig.order("held", path: "/v1/held")
      try await backend.line(containing: "ran POST /v1/held")
      expectExecuted(try await rig.order("gone", path: "/v1/gone"))
      expectExecuted(try await held)
      expectExecuted(try await rig.order("after"))
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test(arguments: ["swollen", "unended", "headless"])
  func `a backend's error on one stream costs the others nothing`(fault: String) async throws {
    try await HTTP2Backend.run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      async let held = rig.order("held", path: "/v1/held")
      try await backend.line(containing: "ran POST /v1/held")
      // More than a stream's first window.
      let body = String(repeating: "x", count: 200_000)
      let broken = try await rig.order("k", body: body, path: "/v1/\(fault)")
      expectRefused(broken, 502, "outcome_unknown", retryable: false)
      expectExecuted(try await held)
      expectExecuted(try await rig.order("after"))
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test func `an abandoned request is reset alone`() async throws {
    try await HTTP2Backend.run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      _ = try await HTTP2Script.run(
        rig, [["open", 1, HTTP2Script.order(path: "/begun"), true], ["bytes", 1, 4], ["reset", 1]])
      try await backend.line(containing: "reset /begun 8")
      expectExecuted(try await rig.order("after"))
      #expect(try await rig.semel.client.send("GET", "/passed").status == 201)
      // One of each kind.
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test func `no claimed request with a body begins on a connection without a window`() async throws {
    // All of them together are shorter than the silence after which a connection is asked for a sign.
    let configuration = Configuration(top: ["workers": "1"], upstream: ["connect_timeout": "500ms"])
    try await HTTP2Backend.run(configuration, saying: ["window=0"]) { rig, backend in
      for number in 0..<3 {
        expectRefused(try await rig.order("k\(number)"), 502, "upstream_unreachable", retryable: true)
      }
      #expect(try await rig.semel.client.send("GET", "/open").status == 200)
      #expect(!backend.output.contains("reset"))
      // One of each kind.
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test func `a claimed request avoids a connection whose window is used up`() async throws {
    try await HTTP2Backend.run(isSecure: false, Configuration(top: ["workers": "1"]), saying: ["mean=1"]) {
      rig, backend in
      expectExecuted(try await rig.order("before"))
      let stuck = Task { try? await rig.order("stuck", body: String(repeating: "x", count: 100_000)) }
      defer { stuck.cancel() }
      // Long before the stuck body's time-out of half a minute.
      var number = 0
      while !backend.output.contains("connection 2"), number < 1000 {
        expectExecuted(try await rig.order("k\(number)", within: .seconds(10)))
        number += 1
      }
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test func `a stuck body times out with its response`() async throws {
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["response_timeout": "1s", "settle": "1s"])
    // The first piece of 64 KiB leaves, and no other.
    try await HTTP2Backend.run(configuration, saying: ["window=70000"]) { rig, backend in
      let began = ContinuousClock.now
      let body = String(repeating: "x", count: 200_000)
      expectRefused(try await rig.order("k", body: body), 504, "outcome_unknown", retryable: true)
      // Clients have half a minute for a body that pauses.
      #expect(ContinuousClock.now - began < .seconds(10))
      // Nothing was heard meanwhile: the first PING comes later.
      try await backend.line(containing: "closed 1")
    }
  }

  @Test(arguments: [true, false])
  func `a connection that has fallen silent gets no more requests`(isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      let lost = Task { try? await rig.order("k", path: "/v1/silent") }
      try await backend.line(containing: "pinged 1")
      // The silent one is given up ten seconds after the PING.
      for number in 0..<3 { expectExecuted(try await rig.order("k\(number)", within: .seconds(8))) }
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
      lost.cancel()
    }
  }

  @Test(arguments: [(true, 2), (false, 1)])
  func `a connection that acknowledges no PING is closed, and no longer counted`(
    isSecure: Bool, maxConnections: Int
  ) async throws {
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["max_connections": "\(maxConnections)", "idle_timeout": "60s"])
    try await HTTP2Backend.run(isSecure: isSecure, configuration) { rig, backend in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(HTTPClient.request("GET", "/fading"))
      try await client.inbox.until("the response's beginning") { $0.bytes.has("some") }
      try await backend.line(containing: "pinged 1")
      if maxConnections > 1 { expectExecuted(try await rig.order("k", within: .seconds(8))) }
      let bytes = String(decoding: try await client.closedByPeer(within: .seconds(20)), as: UTF8.self)
      #expect(bytes.hasPrefix("HTTP/1.1 200 ") && !bytes.contains("\r\n0\r\n"), "\(bytes)")
      try await backend.line(containing: "closed 1")
      expectExecuted(try await rig.order("after"))
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test func `a connection that was silent during a time-out takes no more requests`() async throws {
    // The others have the time that they need.
    let silent =
      "{name: silent, match: {path: /v1/silent}, caller: {parts: ['header:Authorization']}, response_timeout: 500ms}"
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["settle": "10s"], firstRoutes: [silent])
    try await HTTP2Backend.run(configuration) { rig, backend in
      expectExecuted(try await rig.order("before"))
      expectRefused(
        try await rig.order("k", path: "/v1/silent"), 504, "outcome_unknown", retryable: true)
      for number in 0..<3 { expectExecuted(try await rig.order("k\(number)")) }
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test func `a backend that acknowledges pings keeps its connection however slow it is`() async throws {
    let configuration = Configuration(top: ["workers": "1"])
    try await HTTP2Backend.run(configuration) { rig, backend in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(HTTPClient.request("GET", "/slow"))
      try await backend.line(containing: "pinged 1")
      #expect(try await rig.semel.client.send("GET", "/passed").status == 201)
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 1) == 1)
    }
  }

  @Test func `an authenticated connection serves no other client`() async throws {
    try await HTTP2Backend.run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      func connection(_ path: String, _ more: [(String, String)] = []) async throws -> Int {
        let response = try await rig.semel.client.send("GET", path, more)
        return try #require(response["X-Connection"].flatMap { Int($0) })
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

  @Test func `the last stream of a GOAWAY proves nothing if one behind it has a response`() async throws {
    try await HTTP2Backend.run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      async let held = rig.order("held", path: "/v1/held")
      try await backend.line(containing: "ran POST /v1/held")
      expectExecuted(try await rig.order("k", path: "/v1/denied"))
      expectRefused(try await held, 502, "outcome_unknown", retryable: false)
      expectRefused(
        try await rig.order("held", path: "/v1/held"), 409, "outcome_unknown", retryable: false)
      #expect(try await HTTP2Backend.runs(of: "held", at: backend) == 1)
    }
  }

  @Test func `the last stream of a GOAWAY with an error proves nothing`() async throws {
    try await HTTP2Backend.run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      expectExecuted(try await rig.order("before"))
      expectRefused(try await rig.order("k", path: "/v1/calm"), 502, "outcome_unknown", retryable: false)
      let again = try await rig.order("k", path: "/v1/calm")
      #expect(again.problem?.code == "outcome_unknown")
      #expect(try await HTTP2Backend.runs(of: "k", at: backend) == 1)
      expectExecuted(try await rig.order("after"))
    }
  }

  /// Else its head would leave at some later time, maybe when its claim is somebody else's.
  @Test func `a claimed request does not wait behind unsent bytes`() async throws {
    try await HTTP2Backend.run(
      isSecure: false, Configuration(top: ["workers": "1"]), saying: ["window=1000000000"]
    ) {
      rig, backend in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let size = 24 << 20
      try await client.send("PUT /stuck HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
      let upload = Task { try await client.send([UInt8](repeating: UInt8(ascii: "x"), count: size)) }
      try await backend.line(containing: "stuck")
      // Until the kernel takes no more, and what comes waits here.
      try await rig.semel.counter("semel_body_bytes", isAtLeast: 256 << 10)
      for number in 0..<3 { expectExecuted(try await rig.order("k\(number)", within: .seconds(6))) }
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
      try await upload.value
      #expect(try await client.response(to: "PUT").status == 201)
    }
  }

  /// NIO would fail the connection with all that is on it.
  @Test func `a head that does not fit a frame fails alone`() async throws {
    try await HTTP2Backend.run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      async let held = rig.order("held", path: "/v1/held")
      try await backend.line(containing: "ran POST /v1/held")
      for byte in ["x", "{", "\u{e9}"] {
        let value = String(repeating: byte, count: byte == "x" ? 10_000 : 6000)
        let large = [("X-Large", value), ("X-Other", value)]
        expectRefused(try await rig.order("large", large), 431, "header_too_large", retryable: false)
      }
      let fitting = [("X-Large", String(repeating: "x", count: 15_000))]
      expectExecuted(try await rig.order("fitting", fitting))
      expectExecuted(try await rig.order("gone", path: "/v1/gone"))
      expectExecuted(try await held)
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 1) == 1)
    }
  }

  @Test func `a connection is closed after its idle time-out`() async throws {
    let configuration = Configuration(top: ["workers": "1"], upstream: ["idle_timeout": "3s"])
    try await HTTP2Backend.run(configuration) { rig, backend in
      for number in 0..<5 { expectExecuted(try await rig.order("k\(number)")) }
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 1) == 1)
      try await backend.line(containing: "closed 1")
      expectExecuted(try await rig.order("after"))
      #expect(try await HTTP2Backend.connections(to: backend, atLeast: 2) == 2)
    }
  }

  @Test(arguments: [true, false])
  func `a backend that takes no streams gets no request`(isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure, saying: ["streams=0"]) { rig, backend in
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

  @Test func `after GOAWAY requests go to the next connection`() async throws {
    try await HTTP2Backend.run(isSecure: true, Configuration(top: ["workers": "1"])) { rig, backend in
      for number in 0..<20 { expectExecuted(try await rig.order("k\(number)", path: "/v1/leaving")) }
      for number in 0..<20 { #expect(try await HTTP2Backend.runs(of: "k\(number)", at: backend) == 1) }
    }
  }

  @Test func `the table of fields is no larger than by default, whatever the backend permits`() async throws {
    try await HTTP2Backend.run(
      isSecure: false, Configuration(top: ["workers": "1"]), saying: ["table=1000000000"]
    ) { rig, _ in
      for number in 0..<3 {
        let response = try await rig.order("k\(number)")
        #expect(response["X-Table"] == "4096")
      }
    }
  }

  @Test func `a head that is too large for a frame is refused for good, and nothing is sent`() async throws {
    try await HTTP2Backend.run(isSecure: false, Configuration(top: ["workers": "1"])) { rig, backend in
      // A byte takes ten bits in the first ones, and thirteen in the others.
      let fits = (0..<2).map { ("X-\($0)", String(repeating: "?", count: 6000)) }
      expectExecuted(try await rig.order("k1", fits))
      let tooLarge = (0..<3).map { ("X-\($0)", String(repeating: "~", count: 6000)) }
      for _ in 1...2 {
        expectRefused(
          try await rig.order("k2", tooLarge), 431, "header_too_large", retryable: false)
      }
      expectExecuted(try await rig.order("k2"))
      let passed = try await rig.semel.client.send("GET", "/passed", tooLarge)
      #expect(passed.status == 431)
      #expect(!backend.output.contains("GET"))
    }
  }

  /// NIO's servers announce 16 KiB, Netty's 8 KiB, and end the connection for a larger head.
  @Test(arguments: [true, false])
  func `a head beyond the size that the backend announces goes by HTTP 1, or is refused`(isSecure: Bool)
    async throws
  {
    let configuration = Configuration(top: ["workers": "1"])
    try await HTTP2Backend.run(isSecure: isSecure, configuration, saying: ["heads=8192"]) { rig, backend in
      async let held = rig.order("held", path: "/v1/held")
      try await backend.line(containing: "ran POST /v1/held")
      let large = [("X-Large", String(repeating: "0", count: 9000))]
      for _ in 1...2 {
        let passed = try await rig.semel.client.send("GET", "/passed", large)
        #expect(passed.status == (isSecure ? 200 : 431))
        #expect(passed.text == "HTTP/1.1" || !isSecure)
      }
      if isSecure {
        expectExecuted(try await rig.order("large", large), 200)
      } else {
        expectRefused(try await rig.order("large", large), 431, "header_too_large", retryable: false)
      }
      expectExecuted(try await rig.order("gone", path: "/v1/gone"))
      expectExecuted(try await held)
    }
  }

  @Test func `bodies that wait for a backend's window count`() async throws {
    let configuration = Configuration(top: ["workers": "1", "limits": "{body_memory: 64MiB}"])
    try await HTTP2Backend.run(isSecure: false, configuration, saying: ["window=0"]) { rig, _ in
      let size = 200_000
      let head = "PUT /open HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n"
      var clients: [RawClient] = []
      for _ in 0..<8 {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send(head)
        try await client.send(String(repeating: "x", count: size))
        clients.append(client)
      }
      try await rig.semel.counter("semel_body_bytes", becomes: clients.count * (head.utf8.count + size))
    }
  }

  @Test func `a body without memory is refused although the backend takes nothing of it`() async throws {
    let configuration = Configuration(
      top: ["workers": "1", "limits": "{body_memory: 1MiB}"],
      route: ["max_request_body": "64KiB", "max_response_body": "64KiB"])
    try await HTTP2Backend.run(isSecure: false, configuration, saying: ["window=0"]) { rig, _ in
      let (size, begun) = (250_000, 60_000)
      var clients: [RawClient] = []
      for _ in 0..<4 {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send("PUT /open HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
        try await client.send(String(repeating: "x", count: begun))
        clients.append(client)
      }
      try await rig.semel.counter("semel_body_bytes", isAtLeast: 4 * (begun - 4096))
      // Together they are larger than the memory.
      for client in clients { try await client.send(String(repeating: "x", count: size - begun)) }
      // Long before the time-out of half a minute.
      try await rig.semel.counter(
        "semel_refusals_total", label: "overloaded", isAtLeast: 1, within: .seconds(15))
    }
  }
}
