import Glibc
import TestSupport
import Testing

/// `response_timeout`: counted from the request's last byte, whatever precedes it.
struct ResponseTimeoutTests {
  /// The cause of a delay before the request is sent whole.
  enum Delay: String, CaseIterable, Sendable {
    /// The upstream's only connection is taken by another request.
    case connection
    /// The backend takes the request's body slowly.
    case upload

    func pass(on connection: RawConnection) throws {
      switch self {
      case .connection:
        try connection.readRequest()
        // With the pause within the response longer than the limit.
        usleep(3_900_000)
        try connection.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        try connection.readRequest()
      case .upload:
        try connection.readHead()
        for _ in 0..<32 {
          _ = try connection.read(512 << 10)
          // 3.8 s in all.
          usleep(120_000)
        }
      }
    }
  }

  @Test(arguments: Delay.allCases, [true, false])
  func `the time before the request is sent whole does not count`(delay: Delay, streams: Bool) async throws {
    let half = String(repeating: "x", count: 50_000)
    let backend = try RawServer(receiveBuffer: 64 << 10) { connection in
      try delay.pass(on: connection)
      try connection.write("HTTP/1.1 201 Created\r\nContent-Length: 100000\r\n\r\n\(half)")
      // Shorter than the limit.
      usleep(2_600_000)
      try connection.write(half)
      connection.readToEnd()
    }
    let configuration = Configuration(
      top: ["workers": "1"],
      upstream: [
        "url": "'http://127.0.0.1:\(backend.port)'", "response_timeout": "6s", "connect_timeout": "15s",
        "max_connections": "1",
      ],
      route: ["max_request_body": "16MiB", "stream": "\(streams)"])
    try await Rig.run(configuration) { rig in
      if delay == .connection {
        async let other = rig.order("other")
        await backend.reached { $0.requests == 1 }
        let response = try await rig.order("k")
        #expect(response.status == 201 && response.body.count == 100_000, "\(response.text.prefix(200))")
        #expect(try await other.status == 201)
      } else {
        let response = try await rig.order("k", body: String(repeating: "x", count: 16 << 20))
        #expect(response.status == 201 && response.body.count == 100_000, "\(response.text.prefix(200))")
      }
    }
  }

  @Test func `without a free connection to the backend, requests are asked to come later`() async throws {
    let gate = ScriptGate()
    let backend = try RawServer { connection in
      _ = try connection.readRequest()
      gate.pass()
    }
    let configuration = Configuration(
      top: ["workers": "1"],
      upstream: [
        "url": "'http://127.0.0.1:\(backend.port)'", "max_connections": "1", "connect_timeout": "300ms",
      ])
    try await Rig.run(configuration) { rig in
      async let holder = rig.order("holder")
      await backend.reached { $0.requests == 1 }
      let keyed = try await rig.order("k")
      #expect(keyed.status == 503 && keyed["Retry-After"] == "1", "\(keyed.text.prefix(400))")
      #expect(
        keyed.text.contains("overloaded") && keyed.text.contains("all connections to the backend are in use"))
      let passed = try await rig.semel.client.send("GET", "/elsewhere")
      #expect(passed.status == 503 && passed["Retry-After"] == "1", "\(passed.text.prefix(400))")
      #expect(passed.text.contains("overloaded") && !passed.text.contains("same key"))
      gate.open()
      _ = try await holder
    }
  }
}
