import TestSupport
import Testing

/// A WebSocket client and server of others, and Semel between them.
struct WebSocketTests {
  /// The side that speaks TLS.
  enum Encryption: CaseIterable { case none, backend, client }

  /// The script that is the client.
  struct Client {
    /// The url of the tunnel without its path.
    let url: String
    /// The certificate of the authority, where it speaks TLS.
    let authority: [String]

    func start(_ path: String, _ task: String) throws -> ManagedProcess {
      try Python.start("websocket_client", [url + path, task] + authority)
    }

    func run(_ path: String, _ task: String) async throws -> [Report] {
      try await Python.result(of: start(path, task))
    }
  }

  /// Runs `body` with a rig before the server.
  private func run(
    _ encryption: Encryption = .none, top: [String: String] = [:],
    _ body: @escaping @Sendable (Rig, ManagedProcess, Client) async throws -> Void
  ) async throws {
    let port = FreePort.find()
    let certificates = try await Certificates()
    let pair = try await certificates.server()
    let isSecure = encryption == .backend
    let server = try await Python.serve(
      "websocket_server", ["\(port)"] + (isSecure ? [pair.certificate, pair.key] : []))
    var upstream = ["url": "'\(isSecure ? "https" : "http")://localhost:\(port)'"]
    if isSecure { upstream["tls"] = "{ca: \(certificates.authority)}" }
    var top = top
    let listener = FreePort.find()
    if encryption == .client {
      top["listen"] =
        "[{address: '127.0.0.1:\(listener)', tls: {certificate: \(pair.certificate), key: \(pair.key)}}]"
    }
    try await Rig.run(Configuration(top: top, upstream: upstream)) { rig in
      try await body(
        rig, server,
        encryption == .client
          ? Client(url: "wss://localhost:\(listener)", authority: [certificates.authority])
          : Client(url: "ws://127.0.0.1:\(rig.semel.ports.proxy)", authority: []))
    }
    withExtendedLifetime(certificates) {}
  }

  @Test(arguments: Encryption.allCases)
  func `messages pass both ways, pings and the client's close code too`(encryption: Encryption) async throws {
    try await run(encryption) { rig, server, client in
      let report = try await client.run("/echo", "echo")
      #expect(report == Array(repeating: .flag(true), count: 7) + [.number(4000)])
      try await server.line(containing: "closed /echo 4000")
    }
  }

  @Test(arguments: Encryption.allCases)
  func `the server's close code reaches the client`(encryption: Encryption) async throws {
    try await run(encryption) { _, _, client in
      let report = try await client.run("/leave", "leave")
      #expect(report == [.number(4001), .text("enough")])
    }
  }

  @Test(arguments: Encryption.allCases)
  func `a server that is cut ends the client's connection`(encryption: Encryption) async throws {
    try await run(encryption) { _, _, client in
      let report = try await client.run("/cut", "leave")
      #expect(report == [.number(1006), .text("")])
    }
  }

  @Test(arguments: Encryption.allCases)
  func `a client that goes away ends the server's connection`(encryption: Encryption) async throws {
    try await run(encryption) { rig, server, client in
      let process = try client.start("/echo", "cut")
      #expect(try await process.exit() == .code(0))
      try await server.line(containing: "closed /echo 1006")
      try await rig.semel.counter("semel_in_flight_requests", becomes: 0)
    }
  }

  @Test func `an upgrade on a protected route is refused before a byte is sent`() async throws {
    try await run { _, server, client in
      let report = try await client.run("/v1/echo", "refused")
      #expect(report.first == .number(501))
      #expect(!server.output.contains("opened"))
    }
  }

  @Test func `a drain ends an open tunnel within its grace`() async throws {
    try await run(top: ["shutdown_grace": "1s"]) { rig, server, client in
      let process = try client.start("/echo", "stay")
      try await process.line(containing: "open")
      let start = ContinuousClock.now
      rig.semel.terminate()
      #expect(try await rig.semel.process.exit() == .code(0))
      #expect(ContinuousClock.now - start < .seconds(15))
      let report: [Report] = try await Python.result(of: process)
      #expect(report.first == .number(1006))
      try await server.line(containing: "closed /echo 1006")
    }
  }

  @Test func `an idle tunnel is ended`() async throws {
    try await run(top: ["limits": "{tunnel_timeout: 1s}"]) { rig, server, client in
      let report = try await client.run("/echo", "leave_silent")
      #expect(report.first == .number(1006))
      try await server.line(containing: "closed /echo 1006")
      try await rig.semel.counter("semel_in_flight_requests", becomes: 0)
    }
  }

  @Test func `bytes right behind the handshake belong to the tunnel, on both sides`() async throws {
    let backend = try RawServer { connection in
      let head = try connection.readHead()
      guard head.contains("\r\nUpgrade: spoken\r\n"), head.contains("\r\nConnection: Upgrade\r\n") else {
        return
      }
      try connection.write(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: spoken\r\nX-Key: a\r\n\r\nhello")
      let bytes = try connection.read(5)
      try connection.write(bytes.reversed())
      connection.readToEnd()
      // The client is read to the end, and gets its response after it.
      try connection.write("bye")
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let fields = [("Connection", "keep-alive, Upgrade"), ("Upgrade", "spoken")]
      try await client.send(HTTPClient.request("GET", "/open", fields) + "first")
      try await client.inbox.until("the tunnel's bytes") { $0.bytes.has("hellotsrif") }
      try await client.closeSending()
      let bytes = String(decoding: try await client.closedByPeer(), as: UTF8.self)
      #expect(bytes.hasPrefix("HTTP/1.1 101 "))
      #expect(bytes.contains("\r\nUpgrade: spoken\r\n") && bytes.contains("\r\nX-Key: a\r\n"))
      #expect(bytes.hasSuffix("\r\n\r\nhellotsrifbye"))
    }
  }

  /// RFC 9110, section 9.3.6: what came from the side that has closed reaches the other, and then both are closed.
  @Test func `a backend that ends its side of a tunnel ends it after its last bytes`() async throws {
    let ended = Watched(false)
    let backend = try RawServer { connection in
      _ = try connection.readHead()
      try connection.writeLast(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: spoken\r\n\r\n"
          + String(repeating: "x", count: 1 << 20) + "bye")
      connection.readToEnd()
      ended.withValue { $0 = true }
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(
        HTTPClient.request("GET", "/open", [("Connection", "Upgrade"), ("Upgrade", "spoken")]))
      let bytes = try await client.closedByPeer()
      let head = try #require(bytes.firstRange(of: Array("\r\n\r\n".utf8)))
      #expect(bytes.count - head.upperBound == (1 << 20) + 3)
      #expect(bytes.suffix(4).elementsEqual("xbye".utf8))
      try await client.close()
      try await ended.until("the end of the backend's connection") { $0 ? true : nil }
      try await rig.semel.counter("semel_in_flight_requests", becomes: 0)
    }
  }

  @Test(arguments: ["h2c", "websocket, h2c", "HTTP/2.0", "TLS/1.2"])
  func `an upgrade to another version of HTTP is never accepted`(protocols: String) async throws {
    try await Rig.run { rig in
      let fields = [
        ("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", protocols), ("HTTP2-Settings", "AAMAAABk"),
      ]
      let response = try await rig.semel.client.send("GET", "/open", fields)
      #expect(response.status == 201)
      let request = try #require(rig.backend.requests.first)
      #expect(request["Upgrade"] == nil && request["HTTP2-Settings"] == nil)
    }
  }

  @Test(arguments: [
    "Upgrade: h2c\r\n", "Upgrade: TLS/1.0\r\n", "Upgrade: other\r\n", "Upgrade: spoken, h2c\r\n",
    "Upgrade: spoken\r\nUpgrade: HTTP/2.0\r\n", "Upgrade: \r\n", "",
  ])
  func `a switch to an unrequested protocol is never accepted`(chosen: String) async throws {
    let backend = try RawServer { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\(chosen)\r\nhello")
      connection.readToEnd()
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let fields = [("Connection", "Upgrade"), ("Upgrade", "Spoken, more")]
      try await client.send(HTTPClient.request("GET", "/open", fields))
      let response = try await client.response()
      #expect(response.status == 502)
      #expect(!response.text.contains("hello"))
    }
  }

  @Test func `a key that no route protects is ignored in the response of a switch, too`() async throws {
    let backend = try RawServer { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 101 Switch\r\nConnection: Upgrade\r\nUpgrade: spoken\r\n\r\n")
      connection.readToEnd()
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let fields = [("Connection", "Upgrade"), ("Upgrade", "spoken"), ("Idempotency-Key", "k")]
      try await client.send(HTTPClient.request("GET", "/open", fields))
      try await client.closeSending()
      let bytes = String(decoding: try await client.closedByPeer(), as: UTF8.self)
      #expect(bytes.hasPrefix("HTTP/1.1 101 ") && bytes.contains("\r\nIdempotency-Status: ignored\r\n"))
    }
  }

  @Test func `a response of a backend that does not switch is passed on`() async throws {
    let backend = try RawServer { connection in
      while true {
        let isAsked = try connection.readRequest().contains("\r\nUpgrade: websocket\r\n")
        try connection.write("HTTP/1.1 \(isAsked ? 426 : 400) No\r\nContent-Length: 2\r\n\r\nno")
      }
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let fields = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
      for _ in 1...2 {
        try await client.send(HTTPClient.request("GET", "/open", fields))
        let response = try await client.response()
        #expect(response.status == 426)
        #expect(response.text == "no")
      }
      #expect(backend.tally.connections == 1)
    }
  }

  /// A flag, a number or a text of a script's report.
  enum Report: Decodable, Equatable {
    case flag(Bool)
    case number(Int)
    case text(String)

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let flag = try? container.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? container.decode(Int.self) {
        self = .number(number)
      } else {
        self = .text(try container.decode(String.self))
      }
    }
  }
}

extension [UInt8] {
  /// True if the bytes contain the text; `nil` if they do not yet.
  func has(_ text: String) -> Bool? { firstRange(of: Array(text.utf8)) == nil ? nil : true }
}
