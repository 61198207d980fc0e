import TestSupport
import Testing

/// HTTP/2 servers of others as backends, with heads of up to 16 KiB: what strangers' requests do to the connections that
/// claimed ones go by.
struct OtherHTTP2ServerTests {
  enum Server: CaseIterable {
    case hypercorn
    /// A proxy before the rig's backend. It ends a connection for a burst of a thousand resets.
    case nghttpx
  }

  /// Waits until the server has begun so many requests to `/open/never`, which get no response.
  private typealias Held = @Sendable (Int) async throws -> Void

  private static func run(
    _ server: Server, _ body: @escaping @Sendable (Rig, Held) async throws -> Void
  ) async throws {
    let port = FreePort.find()
    let configuration = Configuration(
      top: ["workers": "1"],
      upstream: [
        "url": "'http://127.0.0.1:\(port)'", "http2": "prior_knowledge", "connect_timeout": "10s",
      ])
    try await Rig.run(configuration, within: .seconds(120)) { rig in
      switch server {
      case .hypercorn:
        let process = try await Python.serve("hypercorn_backend", ["\(port)"])
        try await body(rig) { count in
          _ = try await process.lines(atLeast: count) { $0 == "began GET /open/never" }
        }
      case .nghttpx:
        let process = try await nghttpx(port: port, before: rig)
        try await body(rig) { count in
          _ = try await rig.backend.log.until("strangers' requests") { log -> Bool? in
            log.requests.count { $0.path == "/open/never" } >= count ? true : nil
          }
        }
        try await process.kill()
      }
    }
  }

  /// Starts it before the rig's backend, which responds to orders after a tenth of a second.
  private static func nghttpx(port: Int, before rig: Rig) async throws -> ManagedProcess {
    let gate = Gate()
    rig.backend.on("/open/never") { _ in Reply(gate: gate) }
    rig.backend.on("/v1/orders") { Reply(body: #"{"order":\#($0.number)}"#, delay: .milliseconds(100)) }
    let process = try ManagedProcess([
      "nghttpx", "--conf=/dev/null", "--single-process", "-f127.0.0.1,\(port);no-tls",
      "-b127.0.0.1,\(rig.backend.port)", "--request-header-field-buffer=16384",
      "--errorlog-file=/dev/stderr", "--accesslog-file=/dev/null",
    ])
    try await process.awaitListening(at: port)
    return process
  }

  /// Places three orders, has `strangers` act while they are under way, and expects their outcomes.
  private static func order(
    _ round: Int, _ rig: Rig, beside strangers: () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
      for number in 0..<3 { group.addTask { try await rig.order("\(round)-\(number)") } }
      try await strangers()
      for try await response in group { expectExecuted(response) }
    }
  }

  @Test(arguments: Server.allCases)
  func `clients that hang up leave every order its outcome`(server: Server) async throws {
    try await Self.run(server) { rig, held in
      // More resets in all than nghttpx takes on one connection.
      for round in 1...30 {
        var strangers: [RawClient] = []
        for _ in 0..<40 {
          let client = try await RawClient(port: rig.semel.ports.proxy)
          try await client.send(HTTPClient.request("GET", "/open/never"))
          strangers.append(client)
        }
        try await held(40 * round)
        try await Self.order(round, rig) {
          for client in strangers { try await client.reset() }
        }
      }
      try await rig.semel.counter("semel_hang_ups_total", becomes: 1200)
      try await rig.semel.counter("semel_outcomes_lost_total", becomes: 0)
    }
  }

  @Test(arguments: Server.allCases)
  func `heads that are larger than the server takes leave every order its outcome`(server: Server)
    async throws
  {
    try await Self.run(server) { rig, _ in
      let large = ["X-Large", "X-Other"].map { ($0, String(repeating: "0", count: 10_000)) }
      for round in 1...10 {
        try await Self.order(round, rig) {
          let response = try await rig.semel.client.send("GET", "/open/large", large)
          #expect(response.status == 431)
        }
      }
      try await rig.semel.counter("semel_outcomes_lost_total", becomes: 0)
    }
  }
}
