import Foundation
import TestSupport
import Testing

/// Many connections that do nothing, and how many there may be.
struct IdleConnectionTests {
  private static let count = 10_000
  /// In KiB: 30 KiB a connection, in a debug build too.
  private static let maxMemory = 300 << 10

  /// The maximum number of files that a process of this machine may have open.
  private static var openFiles: Int {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return Int(clamping: limit.rlim_max)
  }

  @Test(.enabled(if: openFiles > count + 1000, "the machine allows too few open files"))
  func `ten thousand idle connections are held in little memory, served, and leave little behind`()
    async throws
  {
    let limits = "{max_connections: \(Self.count + 100), idle_timeout: 10m, header_timeout: 1m}"
    try await Rig.run(Configuration(top: ["limits": limits]), within: .seconds(240), slots: Rig.allSlots) {
      rig in
      let idle = try rig.semel.memory("VmRSS")
      let client = try Python.startPlain("idle_connections", ["\(rig.semel.ports.proxy)", "\(Self.count)"])
      try await client.line(containing: "held \(Self.count)", within: .seconds(120))
      try await rig.semel.counter("semel_open_connections", becomes: Self.count)
      let memory = try rig.semel.memory("VmRSS")
      #expect(memory < Self.maxMemory)
      expectExecuted(try await rig.order("k"))
      client.signal(SIGUSR1)
      try await client.line(containing: "responded \(Self.count)", within: .seconds(120))
      let exit = try await client.exit()
      #expect(exit == .code(0), "\(client.errors)")
      let (deadline, most) = (ContinuousClock.now + .seconds(60), idle * 13 / 10)
      while try rig.semel.memory("VmRSS") > most, ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(500))
      }
      let left = try rig.semel.memory("VmRSS")
      #expect(left <= most, "\(left) KiB are left of a burst, \(idle) were held before it")
    }
  }

  @Test func `an idle connection does not hold the buffer of an upload`() async throws {
    let configuration = Configuration(top: ["workers": "1"], route: ["idempotency": "off"])
    try await Rig.run(configuration) { rig in
      let body = String(repeating: "x", count: 400_000)
      func upload() async throws -> RawClient {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send(
          HTTPClient.request(
            "POST", "/v1/orders", Rig.fields(key: nil) + [("Content-Length", "\(body.count)")])
            + body)
        #expect(try await client.response().status == 201)
        return client
      }
      var held: [RawClient] = []
      for _ in 0..<20 { held.append(try await upload()) }
      let before = try rig.semel.memory("VmRSS")
      for _ in 0..<200 { held.append(try await upload()) }
      let growth = try rig.semel.memory("VmRSS") - before
      // 30 KiB a connection.
      #expect(growth < 200 * 30, "\(growth) KiB")
      for client in held { try await client.close() }
    }
  }

  @Test func `a connection beyond the limit takes the place of the one that has rested longest`() async throws
  {
    let configuration = Configuration(top: ["limits": "{max_connections: 4}", "workers": "1"])
    try await Rig.run(configuration) { rig in
      var held: [RawClient] = []
      for number in 0..<4 {
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        try await connection.send(Rig.orderText("k-\(number)"))
        expectExecuted(try await connection.response())
        held.append(connection)
      }
      let more = try await RawClient(port: rig.semel.ports.proxy)
      try await more.send(Rig.orderText("more"))
      expectExecuted(try await more.response())
      try await held[0].closedByPeer()
      for number in 1..<4 {
        try await held[number].send(Rig.orderText("k-\(number)"))
        expectReplayed(try await held[number].response(), 201)
      }
      #expect(try await rig.semel.counter("semel_connections_refused_total") == 0)
      #expect(rig.backend.requests.count == 5)
    }
  }

  @Test func `idle connections of one client deny nobody a connection`() async throws {
    let configuration = Configuration(top: ["limits": "{max_connections: 300}"])
    try await Rig.run(configuration) { rig in
      let strangers = try Python.startPlain("strangers", ["\(rig.semel.ports.proxy)", "idle", "300", "1"])
      try await strangers.line(containing: "held ", within: .seconds(60))
      for number in 0..<20 { expectExecuted(try await rig.order("k-\(number)")) }
      try await strangers.kill()
    }
  }

  @Test func `a connection beyond the limit gets 503 while none rests, and the others are served`()
    async throws
  {
    try await Rig.run(Configuration(top: ["limits": "{max_connections: 4}"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      var held: [RawClient] = []
      for number in 0..<4 {
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        try await connection.send(Rig.orderText("k-\(number)"))
        held.append(connection)
      }
      try await rig.backend.arrived(4)
      for _ in 0..<3 {
        let more = try await RawClient(port: rig.semel.ports.proxy)
        try await more.send(Rig.orderText("more"))
        let refused = try await more.response()
        expectRefused(refused, 503, "overloaded", retryable: true)
        expectRetryAfter(refused)
        #expect(refused["Connection"] == "close")
        try await more.closedByPeer()
      }
      try await rig.semel.counter("semel_connections_refused_total", becomes: 3)
      gate.open()
      for connection in held { expectExecuted(try await connection.response()) }
      expectExecuted(try await rig.order("more") { $0.status != 503 })
      #expect(rig.backend.requests.count == 5)
    }
  }

  @Test func `the process raises its limit of open files, and warns if that does not suffice`()
    async throws
  {
    try await Rig.withSlots {
      let (ports, directory) = (SemelProcess.Ports(), TemporaryDirectory())
      try """
      listen: [{address: '127.0.0.1:\(ports.proxy)'}]
      upstreams: {orders: {url: 'http://127.0.0.1:1'}}
      store: {kind: embedded, path: \(directory.file("semel.db"))}
      """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
      let process = try ManagedProcess([
        "sh", "-c", "ulimit -Sn 100; ulimit -Hn 2000; exec \"$0\" \"$@\"", SemelProcess.binary, "run",
        "--config",
        directory.file("semel.yaml"),
      ])
      let warning = try await process.line(containing: "limits.max_connections does not fit")
      #expect(warning.contains("do not fit into 2000, so that 1"))
      #expect(warning.contains(" clients are let in"))
      try await process.line(containing: "listening")
      let limits = try String(contentsOfFile: "/proc/\(process.id)/limits", encoding: .utf8)
      let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
      #expect(line.split(separator: " ").filter { $0 == "2000" }.count == 2, "\(line)")
      try await process.kill()
    }
  }
}
