import TestSupport
import Testing

/// Bodies that are passed through are streamed, whatever their size.
struct StreamingTests {
  private static let gibibyte = 1 << 30
  /// In KiB.
  private static let maxMemory = 100 << 10

  /// The protocols of the backend and of the client.
  enum Wires: CaseIterable {
    case plain, tlsBackend, http2Backend, http2Client, http2

    var hasHTTP2Client: Bool { self == .http2Client || self == .http2 }

    /// The backend's `http2`; `nil` in clear.
    var backend: String? {
      switch self {
      case .plain, .http2Client: nil
      case .tlsBackend: "off"
      case .http2Backend, .http2: "auto"
      }
    }
  }

  @Test(arguments: Wires.allCases, [Reply.Framing.length, .chunked])
  func `a download of one GiB needs little memory`(wires: Wires, framing: Reply.Framing) async throws {
    // The framing is the client's only in HTTP/1.1.
    if wires.hasHTTP2Client, framing == .chunked { return }
    let certificates = try await Certificates()
    let pair = try await certificates.server()
    let listener = FreePort.find()
    var configuration = Configuration()
    if wires.hasHTTP2Client {
      configuration.top["listen"] =
        "[{address: '127.0.0.1:\(listener)', tls: {certificate: \(pair.certificate), key: \(pair.key)}}]"
    }
    let body: @Sendable (Rig) async throws -> Void = { rig in
      rig.backend.on("/open") { _ in Reply(200, [], content: .filler(Self.gibibyte), framing: framing) }
      if wires.hasHTTP2Client {
        let curl = try ManagedProcess([
          "curl", "--silent", "--http2", "--cacert", certificates.authority, "--output", "/dev/null",
          "--write-out",
          "%{http_version} %{size_download}", "https://localhost:\(listener)/open",
        ])
        #expect(try await curl.exit(within: .seconds(200)) == .code(0))
        #expect(curl.output == "2 \(Self.gibibyte)")
      } else {
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        connection.inbox.withValue { $0.isCounting = true }
        try await connection.send("GET /open HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        try await connection.closedByPeer(within: .seconds(200))
        #expect(connection.inbox.value.total > Self.gibibyte)
      }
      if wires.backend == "auto" { #expect(rig.backend.requests.map { $0["X-Protocol"] } == ["HTTP/2.0"]) }
      let memory = try rig.semel.memory("VmHWM")
      #expect(memory < Self.maxMemory)
    }
    if let http2 = wires.backend {
      var backend = try await SecureBackend()
      backend.http2 = http2
      try await backend.run(nil, configuration, within: .seconds(240), body)
    } else {
      try await Rig.run(configuration, within: .seconds(240), body)
    }
  }

  @Test(arguments: [true, false])
  func `an upload of one GiB needs little memory`(isChunked: Bool) async throws {
    try await Rig.run(within: .seconds(240)) { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      let framing = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(Self.gibibyte)"
      try await connection.send("PUT /open HTTP/1.1\r\nHost: h\r\n\(framing)\r\n\r\n")
      let size = 1 << 20
      var piece = [UInt8](repeating: UInt8(ascii: "x"), count: size)
      if isChunked { piece = Array("\(String(size, radix: 16))\r\n".utf8) + piece + Array("\r\n".utf8) }
      for _ in 0..<Self.gibibyte / size { try await connection.send(piece) }
      if isChunked { try await connection.send("0\r\n\r\n") }
      #expect(try await connection.response(to: "PUT", within: .seconds(100)).status == 201)
      #expect(rig.backend.requests.map(\.bodyLength) == [Self.gibibyte])
      let memory = try rig.semel.memory("VmHWM")
      #expect(memory < Self.maxMemory)
    }
  }

  @Test func `a client that does not read holds the backend back`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/open") { _ in Reply(200, [], content: .filler(256 << 20)) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.setReading(false)
      try await connection.send("GET /open HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
      #expect(try await rig.backend.stalled() < 256 << 20)
      let memory = try rig.semel.memory("VmHWM")
      #expect(memory < Self.maxMemory)
      connection.inbox.withValue { $0.isCounting = true }
      try await connection.setReading(true)
      try await connection.closedByPeer(within: .seconds(40))
      #expect(connection.inbox.value.total > 256 << 20)
    }
  }

  @Test func `a large protected response is streamed as well`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders") { _ in Reply(200, [], content: .filler(256 << 20)) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      connection.inbox.withValue { $0.isCounting = true }
      try await connection.send(Rig.orderText("k", [("Connection", "close")]))
      try await connection.closedByPeer(within: .seconds(40))
      #expect(connection.inbox.value.total > 256 << 20)
      let memory = try rig.semel.memory("VmHWM")
      #expect(memory < Self.maxMemory)
      #expect(try await rig.order("k").problem?.code == "response_not_kept")
    }
  }

  @Test func `the head of a passed-through response does not wait for its body`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/open") { _ in Reply(200, [], content: .filler(10), ending: .cut(after: 0)) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send("GET /open HTTP/1.1\r\nHost: h\r\n\r\n")
      let bytes = try await connection.closedByPeer()
      #expect(String(decoding: bytes, as: UTF8.self).hasPrefix("HTTP/1.1 200 "))
    }
  }

  /// The client's piece is written to the backend before its end is read.
  @Test func `a response that a reset has cut is not whole, although a write has met the reset`() async throws
  {
    let (hasHead, isReset, gate) = (Watched(false), Watched(false), ScriptGate())
    let backend = try RawServer { connection in
      _ = try connection.readHead()
      hasHead.withValue { $0 = true }
      gate.pass()
      try connection.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart")
      connection.reset()
      isReset.withValue { $0 = true }
    }
    let configuration = Configuration(
      top: ["workers": "1"], upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(
        "POST /open HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
      try await hasHead.until("the head") { $0 ? true : nil }
      rig.semel.freeze()
      try await client.send("6\r\nsecond\r\n")
      gate.open()
      try await isReset.until("the reset") { $0 ? true : nil }
      rig.semel.thaw()
      try await client.closedByPeer()
      #expect(client.inbox.value.isReset)
    }
  }
}
