import Glibc
import TestSupport
import Testing

/// SIGHUP: another configuration on the same connections, or none at all.
struct ReloadTests {
  @Test(arguments: StoreKind.allCases)
  func `twenty reloads under load drop no connection and lose no request`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let hasEnded = Watched(false)
      let responded = try await withThrowingTaskGroup(of: Int.self) { group in
        for client in 0..<4 {
          group.addTask {
            let connection = try await RawClient(port: rig.semel.ports.proxy)
            var count = 0
            while !hasEnded.value {
              try await connection.send(Rig.orderText("k-\(client)-\(count)"))
              expectExecuted(try await connection.response())
              try await connection.send(Rig.orderText(nil, path: "/open"))
              #expect(try await connection.response().status == 201)
              count += 1
            }
            return count
          }
        }
        for number in 1...20 {
          try await rig.reload {
            $0.route["retention"] = "\(number)h"
            $0.top["limits"] = "{max_in_flight: \(1000 + number)}"
            $0.upstream["max_connections"] = "\(20 + number)"
          }
        }
        hasEnded.withValue { $0 = true }
        return try await group.reduce(0, +)
      }
      #expect(responded >= 4)
      #expect(rig.backend.requests.count == 2 * responded)
      try await rig.semel.counter("semel_reloads_total", becomes: 20)
      #expect(try await rig.semel.counter("semel_connections_refused_total") == 0)
    }
  }

  @Test func `a request under way ends by the configuration under which it began`() async throws {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { $0.number == 1 ? Reply(500, gate: gate) : Reply(500) }
      async let early = rig.order("early")
      try await rig.backend.arrived(1)
      try await rig.reload { $0.route["outcomes"] = "{retry: [500]}" }
      let late = try await rig.order("late")
      #expect(late.idempotencyStatus == "not-stored")
      gate.open()
      expectExecuted(try await early, 500)
    }
  }

  @Test func `another address of a backend counts from the next request on, and records stay`() async throws {
    try await Rig.run { rig in
      let first = try await rig.order("k")
      let other = OrdersBackend()
      try await other.start()
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("before"))
      expectExecuted(try await connection.response())
      try await rig.reload { $0.upstream["url"] = "'http://127.0.0.1:\(other.port)'" }
      try await connection.send(Rig.orderText("after"))
      expectExecuted(try await connection.response())
      #expect(rig.backend.requests.count == 2)
      #expect(other.requests.count == 1)
      expectReplayed(try await rig.order("k"), of: first)
      try await other.stop()
    }
  }

  @Test(arguments: ["1", "2"])
  func `what is under way on an upstream that a reload removes ends there, and its connections close`(
    workers: String
  ) async throws {
    let gate = ScriptGate()
    let ended = Watched(0)
    let removed = try RawServer { connection in
      defer { ended.withValue { $0 += 1 } }
      while true {
        let request = try connection.readRequest()
        if request.contains("\r\nUpgrade: spoken\r\n") {
          try connection.write(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: spoken\r\n\r\nhello")
          return try connection.write(connection.read(5).reversed())
        }
        let pieces = ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha", "lf"]
        try connection.write(pieces[0])
        if !request.hasPrefix("GET /removed/idle ") { gate.pass() }
        try connection.write(pieces[1])
      }
    }
    let own = "{url: 'http://127.0.0.1:\(removed.port)', idle_timeout: 60s}"
    try await Rig.run(Configuration(top: ["workers": workers])) { rig in
      var before = Configuration(top: ["workers": workers], route: ["upstream": "orders"])
      let after = before
      before.top["upstreams"] = "{orders: {url: 'http://127.0.0.1:\(rig.backend.port)'}, removed: \(own)}"
      before.firstRoutes = [
        "{name: passed, match: {path: '/removed/**'}, upstream: removed, idempotency: off}",
        "{name: kept, match: {path: /v1/removed}, upstream: removed, "
          + "caller: {parts: ['header:Authorization']}}",
      ]
      try await rig.reloadAccepted(before)

      let tunnel = try await RawClient(port: rig.semel.ports.proxy)
      let upgrade = [("Connection", "Upgrade"), ("Upgrade", "spoken")]
      try await tunnel.send(HTTPClient.request("GET", "/removed/tunnel", upgrade))
      try await tunnel.inbox.until("the tunnel") { $0.bytes.has("hello") }
      let passed = try await RawClient(port: rig.semel.ports.proxy)
      try await passed.send(HTTPClient.request("GET", "/removed/passed"))
      try await passed.inbox.until("a part of the response") { $0.bytes.has("\r\n\r\nha") }
      async let claimed = rig.order("k", path: "/v1/removed")
      await removed.reached { $0.requests == 3 }
      #expect(try await rig.semel.client.send("GET", "/removed/idle").text == "half")

      try await rig.reloadAccepted(after)
      try await rig.semel.counter("semel_reloads_total", becomes: 2)
      try await ended.until("the end of the unused connection") { $0 == 1 ? true : nil }
      for _ in 0..<2 { gate.open() }
      #expect(try await passed.response(to: "GET").text == "half")
      expectExecuted(try await claimed, 200)
      try await ended.until("the end of those that were used") { $0 == 3 ? true : nil }
      try await tunnel.send("first")
      try await tunnel.inbox.until("the tunnel's bytes") { $0.bytes.has("hellotsrif") }
      expectExecuted(try await rig.order("k", path: "/v1/removed"))
      #expect(removed.tally.requests == 4 && rig.backend.requests.count == 1)
    }
  }

  @Test func `a bad file leaves the old configuration, and all its errors are reported`() async throws {
    try await Rig.run { rig in
      let first = try await rig.order("k")
      try await rig.reload {
        $0.route["lease"] = "soon"
        $0.top["colour"] = "red"
      }
      expectReplayed(try await rig.order("k"), of: first)
      let page = try await rig.semel.admin.send("GET", "/readyz")
      #expect(page.status == 200)
      for expected in ["reload refused", "semel.yaml:2:1: colour: unknown member", "routes[0].lease:"] {
        #expect(page.text.contains(expected), "\(expected) in \(page.text)")
      }
      for expected in ["colour: unknown member", "routes[0].lease:", "the old configuration stays in use"] {
        try await rig.semel.process.line(containing: expected)
      }

      try await rig.reload { $0.route["retention"] = "3s" }
      #expect(try await rig.semel.admin.send("GET", "/readyz").text.contains("reload refused") == false)
      try await rig.semel.counter("semel_reloads_total", becomes: 1)
      try await rig.semel.counter("semel_reloads_refused_total", becomes: 1)
    }
  }

  @Test func `a reload's verdict can be waited for`() async throws {
    try await Rig.run { rig in
      func reload(_ configuration: Configuration) async throws -> (exit: ManagedProcess.Exit, text: String) {
        try rig.semel.configure(rig.text(of: configuration))
        rig.semel.process.signal(SIGHUP)
        let health = try ManagedProcess([
          SemelProcess.binary, "health", "--reloaded", rig.semel.directory.file("semel.yaml"),
          "--admin", "http://127.0.0.1:\(rig.semel.ports.admin)",
        ])
        return (try await health.exit(), health.output + health.errors)
      }
      var changed = rig.configuration
      changed.route["retention"] = "3h"
      let taken = try await reload(changed)
      #expect(taken.exit == .code(0) && taken.text.contains("is in use"), "\(taken.text)")
      changed.top["workers"] = "1"
      let refused = try await reload(changed)
      #expect(refused.exit == .code(1), "\(refused.text)")
      #expect(refused.text.contains("workers: cannot change while Semel runs"), "\(refused.text)")
    }
  }

  /// Opens a pipe once it has a reader.
  private static func writer(to path: String) async throws -> Int32 {
    let deadline = ContinuousClock.now + .seconds(20)
    while ContinuousClock.now < deadline {
      let descriptor = open(path, O_WRONLY | O_NONBLOCK)
      if descriptor >= 0 { return descriptor }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw TestFailure("nobody reads \(path)")
  }

  /// A pipe that nobody writes to, as a file on a machine that is gone.
  @Test func `a file that does not come holds up neither the status nor the stop`() async throws {
    try await Rig.run { rig in
      let first = try await rig.order("k")
      let path = rig.semel.directory.file("semel.yaml")
      #expect(unlink(path) == 0 && mkfifo(path, 0o600) == 0)
      rig.semel.process.signal(SIGHUP)
      let writer = try await Self.writer(to: path)
      defer { close(writer) }
      #expect(try await rig.semel.admin.send("GET", "/readyz").status == 200)
      #expect(try await rig.semel.admin.send("GET", "/metrics").status == 200)
      expectReplayed(try await rig.order("k"), of: first)
      rig.semel.terminate()
      #expect(try await rig.semel.process.exit() == .code(0))
    }
  }

  @Test func `signals during a start lead to one reload after it`() async throws {
    // A Redis that takes connections, and is waited for.
    let silent = try RawServer { $0.readToEnd() }
    let configuration = Configuration(
      top: ["store": "{kind: redis, url: 'redis://127.0.0.1:\(silent.port)/0', timeout: 3s}"],
      route: ["lease": "10s"])
    try await Rig.run { rig in
      try await rig.semel.kill()
      try rig.semel.configure(rig.text(of: configuration))
      let process = try rig.semel.launch()
      await silent.reached { $0.connections > 0 }
      var changed = configuration
      changed.route["retention"] = "1h"
      try rig.semel.configure(rig.text(of: changed))
      for _ in 0..<3 { process.signal(SIGHUP) }
      try await process.line(containing: #""message":"listening""#)
      try await rig.semel.counter("semel_reloads_total", becomes: 1)
      try await rig.semel.reload(rig.text(of: configuration))
      try await rig.semel.counter("semel_reloads_total", becomes: 2)
    }
    withExtendedLifetime(silent) {}
  }

  @Test func `readiness and log identify the active configuration`() async throws {
    try await Rig.run { rig in
      func digest() async throws -> String {
        let text = try await rig.semel.admin.send("GET", "/readyz").text
        #expect(text.hasPrefix("ready\nconfiguration "), "\(text)")
        return String(text.dropFirst("ready\nconfiguration ".count).prefix { $0 != "," })
      }
      let first = try await digest()
      try await rig.reload { $0.route["retention"] = "1h" }
      let second = try await digest()
      #expect(first != second && second.count == 12)
      try await rig.semel.process.line(containing: #""configuration":"\#(second)""#)
      try await rig.reload { $0.top["workers"] = "3" }
      #expect(try await digest() == second)
      try await rig.reload { _ in }
      #expect(try await digest() == first)
    }
  }

  @Test func `a reload with a member that cannot change live is refused as a whole`() async throws {
    try await Rig.run { rig in
      try await rig.reload {
        $0.top["workers"] = "3"
        $0.storeMembers["namespace"] = "other"
        $0.firstRoutes = [
          "{name: gone, match: {path: /open}, idempotency: required, caller: {parts: [address]}}"
        ]
      }
      let text = try await rig.semel.admin.send("GET", "/readyz").text
      #expect(text.contains("workers: cannot change"))
      #expect(text.contains("store.namespace: cannot change"))
      #expect(try await rig.order(nil, path: "/open").status == 201)
    }
  }

  @Test func `another identity of records needs allow_identity_change in the file`() async throws {
    try await Rig.run { rig in
      let first = try await rig.order("k")
      try await rig.reload { $0.route["caller"] = "{parts: [address]}" }
      #expect(
        try await rig.semel.admin.send("GET", "/readyz").text.contains(
          "routes[0].caller: is another than in orders"))
      expectReplayed(try await rig.order("k"), of: first)
      expectExecuted(try await rig.order("k", caller: "Bearer bob"))

      var changed = rig.configuration
      changed.route["caller"] = "{parts: [address]}"
      try await rig.reloadAccepted(changed)
      // By address both are one caller, whose key is new.
      let third = try await rig.order("k")
      expectExecuted(third)
      expectReplayed(try await rig.order("k", caller: "Bearer bob"), of: third)
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test func `an earlier route that takes protected requests needs allow_identity_change, too`() async throws
  {
    try await Rig.run { rig in
      let first = try await rig.order("k")
      try await rig.reload {
        $0.firstRoutes = ["{name: all, match: {path: '/{v}/orders'}, idempotency: off}"]
      }
      #expect(
        try await rig.semel.admin.send("GET", "/readyz").text.contains(
          "routes[0].match: may take requests that orders before"))
      expectReplayed(try await rig.order("k"), of: first)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `limits change for connections that are open`() async throws {
    try await Rig.run { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      let long = ("X-Long", String(repeating: "x", count: 5000))
      try await connection.send(Rig.orderText("k", [long]))
      expectExecuted(try await connection.response())
      try await rig.reload { $0.top["limits"] = "{header_bytes: 4KiB}" }
      try await connection.send(Rig.orderText("k", [long]))
      #expect(try await connection.response().status == 431)
    }
  }

  @Test func `the access log and the log's level change, each by itself`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("loud"))
      try await rig.semel.process.line(containing: #""outcome":"executed""#)
      try await rig.reload { $0.top["log"] = "{level: info, format: json, access: false}" }
      try await rig.semel.process.line(containing: "the configuration was reloaded")
      let before = rig.semel.process.output.count
      let first = try await rig.order("quiet")
      expectExecuted(first)
      try await rig.reload { $0.top["log"] = "{level: warning, format: json, access: true}" }
      expectReplayed(try await rig.order("quiet"), of: first)
      // The replay's entry, which shows that the first run of the key left none.
      try await rig.semel.process.line(containing: #""outcome":"replayed""#)
      let after = rig.semel.process.output.dropFirst(before)
      #expect(!after.contains(#""outcome":"executed""#))
    }
  }
}
