import Glibc
import TestSupport
import Testing

/// SIGTERM: what is in flight is finished and recorded.
struct ShutdownTests {
  @Test(arguments: StoreKind.allCases)
  func `a request in flight is finished and recorded`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      let idle = try await RawClient(port: rig.semel.ports.proxy)
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      rig.semel.terminate()
      try await idle.closedByPeer()
      // No longer accepted: refused, or cut before a response.
      if let late = try? await rig.order("late", within: .seconds(2)) {
        #expect(late.problem?.code == "overloaded")
      }
      #expect(rig.semel.process.state.value.exit == nil)
      gate.open()
      let response = try await connection.response()
      expectExecuted(response)
      #expect(try await rig.semel.process.exit() == .code(0))
      #expect(rig.backend.requests.count == 1)

      try await rig.semel.start()
      expectReplayed(try await rig.order("k"), of: response)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a request that outlasts the grace is marked unknown at once`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, top: ["shutdown_grace": "1s"], route: ["lease": "60s", "wait_timeout": "20s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      let passed = try await RawClient(port: rig.semel.ports.proxy)
      rig.backend.on("/open") { _ in Reply(gate: gate) }
      try await passed.send(Rig.orderText(nil, path: "/open"))
      let id = try #require(try await rig.backend.arrived(2)[0].requestID)
      let process = rig.semel.process
      rig.semel.terminate()
      expectRefused(try await connection.response(), 502, "outcome_unknown", retryable: true)
      try await process.exit(within: .seconds(20))
      // The refusal was written in the turn in which responses that were not taken are reset.
      try await connection.closedByPeer()
      #expect(!connection.inbox.value.isReset)
      let lines = process.output.split(separator: "\n") + process.errors.split(separator: "\n")
      let ended = lines.filter { $0.contains(#""method":"POST""#) }
      #expect(ended.count { $0.contains(#""outcome":"cut""#) } == 1, "\(ended)")
      let refused = ended.filter { $0.contains(#""record":"\#(id)""#) }
      #expect(refused.count == 1 && refused[0].contains(#""outcome":"refused""#), "\(ended)")
      #expect(refused.allSatisfy { $0.contains(#""cause":"shutdown""#) }, "\(ended)")
      let marked = lines.filter { $0.contains("a record is marked unknown") }
      #expect(
        marked.count == 1 && marked[0].contains(id) && marked[0].contains(#""route":"orders""#), "\(marked)")
      let lost = lines.filter { $0.contains("the outcome of a request was lost") }
      #expect(
        lost.count == 1 && lost[0].contains(id) && lost[0].contains(#""cause":"shutdown""#), "\(lost)")
      try await rig.semel.start()
      let start = ContinuousClock.now
      let after = try await rig.order("k")
      #expect(after.problem?.code == "outcome_unknown")
      // Nobody had to wait for the lease of a minute.
      #expect(ContinuousClock.now - start < .seconds(10))
      #expect(rig.backend.runs(of: "k") == 1)
      gate.open()
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `what was not sent by the end of the grace is given back`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, top: ["shutdown_grace": "1s", "workers": "1"],
      upstream: ["max_connections": "1", "connect_timeout": "60s"], route: ["lease": "60s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders", inTurn: [Reply(gate: gate), Reply()])
      async let sent = rig.order("sent")
      try await rig.backend.arrived(1)
      // It has its claim, and waits for the connection.
      async let waiting = rig.order("waiting")
      let list = ["list", "--state", "in_flight", "--json"]
      let deadline = ContinuousClock.now + .seconds(20)
      while try await rig.key(list).output.split(separator: #""in_flight""#).count < 3 {
        guard ContinuousClock.now < deadline else { throw TestFailure("the second claim was not made") }
        try await Task.sleep(for: .milliseconds(20))
      }
      let process = rig.semel.process
      rig.semel.terminate()
      expectRefused(try await sent, 502, "outcome_unknown", retryable: true)
      expectRefused(try await waiting, 503, "overloaded", retryable: true)
      try await process.exit(within: .seconds(20))
      let lines = (process.output + process.errors).split(separator: "\n")
      #expect(lines.count { $0.contains("the outcome of a request was lost") } == 1)
      #expect(lines.count { $0.contains("a record is marked unknown") } == 1)
      gate.open()
      try await rig.semel.start()
      expectExecuted(try await rig.order("waiting"))
      #expect(rig.backend.runs(of: "waiting") == 1)
    }
  }

  /// To a client of HTTP/1.0 the connection's end is the response's.
  @Test(arguments: ["/open", "/v1/orders"], [nil, "stream", "shadow"])
  func `a response that has begun is reset at the end of the grace`(path: String, member: String?)
    async throws
  {
    let gate = ScriptGate()
    let backend = try RawServer { connection in
      try connection.readRequest()
      try connection.write(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40000\r\n\(String(repeating: "x", count: 0x40000))\r\n"
      )
      gate.pass()
    }
    let route = member.map { [$0: "true"] } ?? [:]
    let configuration = Configuration(
      top: ["shutdown_grace": "1s"], upstream: ["url": "'http://127.0.0.1:\(backend.port)'"], route: route)
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(
        Rig.orderText("k", path: path).replacing("HTTP/1.1", with: "HTTP/1.0", maxReplacements: 1))
      await backend.reached { $0.requests == 1 }
      let process = rig.semel.process
      if member != nil || path == "/open" {
        try await client.inbox.until("a part") { $0.total > 1000 ? true : nil }
      }
      rig.semel.terminate()
      try await client.closedByPeer()
      #expect(try await process.exit(within: .seconds(20)) == .code(0))
      let text = String(decoding: client.inbox.value.bytes, as: UTF8.self)
      // One that is recorded whole has not begun.
      #expect(client.inbox.value.isReset != text.contains("outcome_unknown"), "\(text)")
      gate.open()
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `duplicates that wait at the end of the grace are refused, and logged so`(store: StoreKind)
    async throws
  {
    let configuration = Configuration(
      store: store, top: ["shutdown_grace": "1s"], route: ["lease": "60s", "wait_timeout": "60s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      var clients: [RawClient] = []
      for count in 0..<3 {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send(Rig.orderText("k"))
        clients.append(client)
        if count == 0 { try await rig.backend.arrived(1) }
      }
      try await rig.semel.counter("semel_waiting_requests", becomes: 2)
      let process = rig.semel.process
      rig.semel.terminate()
      for (client, status) in zip(clients, [502, 409, 409]) {
        let response = try await client.response()
        #expect(response.status == status && response.problem?.code == "outcome_unknown")
      }
      try await process.exit(within: .seconds(20))
      let lines = process.output.split(separator: "\n") + process.errors.split(separator: "\n")
      let ended = lines.filter { $0.contains(#""method":"POST""#) }
      #expect(ended.count == 3 && ended.allSatisfy { $0.contains(#""outcome":"refused""#) }, "\(ended)")
      #expect(rig.backend.requests.count == 1)
      gate.open()
    }
  }

  @Test func `requests that have arrived when the process stops get a response`() async throws {
    try await Rig.run(Configuration(top: ["workers": "1"])) { rig in
      var clients: [RawClient] = []
      for number in 0..<20 {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send(Rig.orderText("first\(number)"))
        expectExecuted(try await client.response())
        clients.append(client)
      }
      rig.semel.freeze()
      for (number, client) in clients.enumerated() { try await client.send(Rig.orderText("k\(number)")) }
      rig.semel.terminate()
      rig.semel.process.signal(SIGCONT)
      for client in clients {
        let response = try await client.response()
        #expect(response.status == 201 || response.problem?.code == "overloaded")
      }
      #expect(try await rig.semel.process.exit() == .code(0))
    }
  }

  @Test func `a shadowed request is cut at the end of the grace, and not refused`() async throws {
    let configuration = Configuration(top: ["shutdown_grace": "1s"], route: ["shadow": "true"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      let process = rig.semel.process
      rig.semel.terminate()
      #expect(try await connection.closedByPeer() == [])
      #expect(try await process.exit(within: .seconds(20)) == .code(0))
      #expect(process.output.contains(#""outcome":"cut""#))
      gate.open()
    }
  }

  @Test func `the rest of a response that an idle connection's client reads slowly is not cut`()
    async throws
  {
    try await Rig.run(Configuration(top: ["workers": "1"])) { rig in
      // Small enough to be handed to the kernel in one write.
      let size = 60 << 10
      rig.backend.on("/v1/orders") { _ in Reply(200, [], content: .filler(size)) }
      let slow = try await RawClient(port: rig.semel.ports.proxy)
      try await slow.setReading(false)
      var sent = 0
      while try await rig.semel.counter("semel_body_bytes") == 0 {
        sent += 1
        try await slow.send(Rig.orderText("k\(sent)"))
        try await rig.semel.counter("semel_requests_total", isAtLeast: sent)
      }
      let idle = try await RawClient(port: rig.semel.ports.proxy)
      rig.semel.terminate()
      try await idle.closedByPeer()
      try await slow.setReading(true)
      for _ in 0..<sent { #expect(try await slow.response().body.count == size) }
      try await slow.closedByPeer()
      #expect(try await rig.semel.process.exit() == .code(0))
    }
  }

  /// The embedded store loses no replies to claims, so that none has to be given back.
  @Test func `claims that are being released get the rest of the grace`() async throws {
    let configuration = Configuration(store: .redis, storeMembers: ["timeout": "250ms"])
    try await Rig.run(configuration) { rig in
      rig.redis?.freeze()
      expectRefused(try await rig.order("k"), 503, "store_unavailable", retryable: true)
      let idle = try await RawClient(port: rig.semel.ports.proxy)
      let process = rig.semel.process
      rig.semel.terminate()
      try await idle.closedByPeer()
      // An idle process would have ended by now.
      try await Task.sleep(for: .milliseconds(500))
      #expect(process.state.value.exit == nil)
      rig.redis?.thaw()
      #expect(try await process.exit() == .code(0))
    }
  }

  @Test func `records are marked unknown all at once, however slow the store is`() async throws {
    let redis = try await RedisServer()
    let relay = try await SlowRelay(to: redis.port, delay: .milliseconds(200))
    let configuration = Configuration(
      store: .redis, top: ["shutdown_grace": "1s", "workers": "1"],
      storeMembers: ["url": "'redis://127.0.0.1:\(relay.port)/0'", "timeout": "10s"],
      route: ["lease": "60s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let requests = (0..<100).map { number in Task { try await rig.order("k\(number)") } }
      try await rig.backend.arrived(100)
      let process = rig.semel.process
      let start = ContinuousClock.now
      rig.semel.terminate()
      try await process.exit(within: .seconds(40))
      // One after the other takes twenty seconds.
      #expect(ContinuousClock.now - start < .seconds(10))
      let lines = (process.output + process.errors).split(separator: "\n")
      #expect(lines.count { $0.contains("a record is marked unknown") } == 100)
      for request in requests { _ = try? await request.value }
      gate.open()
    }
    withExtendedLifetime((redis, relay)) {}
  }

  @Test func `a draining process is not ready, and still accepts`() async throws {
    try await Rig.run(Configuration(top: ["drain_delay": "10s"])) { rig in
      rig.semel.terminate()
      try await rig.semel.page("/readyz", becomes: 503, within: .seconds(5))
      expectExecuted(try await rig.order("k"))
      #expect(try await rig.semel.process.exit(within: .seconds(30)) == .code(0))
    }
  }

  @Test func `an idle process ends at once`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k"))
      let start = ContinuousClock.now
      rig.semel.terminate()
      #expect(try await rig.semel.process.exit() == .code(0))
      // The grace is half a minute.
      #expect(ContinuousClock.now - start < .seconds(10))
    }
  }

  @Test func `Ctrl-C ends the process in the same way`() async throws {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let idle = try await RawClient(port: rig.semel.ports.proxy)
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      rig.semel.process.signal(SIGINT)
      try await idle.closedByPeer()
      gate.open()
      expectExecuted(try await first)
      #expect(try await rig.semel.process.exit() == .code(0))
    }
  }
}
