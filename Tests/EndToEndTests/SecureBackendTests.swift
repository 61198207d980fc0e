import Foundation
import TestSupport
import Testing

/// A backend behind TLS: verified before a byte of a request is sent.
struct SecureBackendTests {
  @Test(arguments: ["off", "auto"])
  func `a keyed request runs once behind TLS, and is replayed`(http2: String) async throws {
    var backend = try await SecureBackend()
    backend.http2 = http2
    try await backend.run { rig in
      let first = try await rig.order("k")
      expectExecuted(first)
      expectReplayed(try await rig.order("k"), of: first)
      let request = try #require(rig.backend.requests.first)
      #expect(rig.backend.requests.count == 1)
      #expect(request["X-Protocol"] == (http2 == "off" ? "HTTP/1.1" : "HTTP/2.0"))
      #expect(request["X-Server-Name"] == "localhost")
      #expect(request.text == #"{"amount":1999}"#)
    }
  }

  @Test(arguments: ["off", "auto"]) func `a connection is used again`(http2: String) async throws {
    var backend = try await SecureBackend()
    backend.http2 = http2
    // A worker may get none of the requests for a while.
    try await backend.run(nil, Configuration(upstream: ["idle_timeout": "60s"])) { rig in
      for number in 0..<20 { expectExecuted(try await rig.order("k\(number)")) }
      let connections = Set(rig.backend.requests.map { $0["X-Connection"] })
      // One of each worker.
      #expect(connections.count <= 2)
      #expect(rig.backend.requests.count == 20)
    }
  }

  @Test func `if the backend has no HTTP 2, auto means HTTP 1`() async throws {
    var backend = try await SecureBackend()
    backend.http2 = "auto"
    backend.speaksHTTP2 = false
    try await backend.run { rig in
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map { $0["X-Protocol"] } == ["HTTP/1.1"])
    }
  }

  @Test func `a head that does not fit a frame of HTTP 2 goes by HTTP 1`() async throws {
    var backend = try await SecureBackend()
    backend.http2 = "auto"
    try await backend.run { rig in
      let large = (0..<3).map { ("X-Large-\($0)", String(repeating: "x", count: 7000)) }
      expectExecuted(try await rig.order("large", large))
      expectExecuted(try await rig.order("small"))
      #expect(rig.backend.requests.map { $0["X-Protocol"] } == ["HTTP/1.1", "HTTP/2.0"])
    }
  }

  @Test func `if HTTP 2 is not agreed upon, no more connections are made than allowed`() async throws {
    var backend = try await SecureBackend()
    backend.http2 = "auto"
    backend.speaksHTTP2 = false
    let configuration = Configuration(top: ["workers": "1"], upstream: ["max_connections": "3"])
    try await backend.run(nil, configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for number in 0..<6 { group.addTask { try await rig.order("k\(number)") } }
        try await rig.backend.arrived(3)
        gate.open()
        for try await response in group { expectExecuted(response) }
      }
      #expect(Set(rig.backend.requests.map { $0["X-Connection"] }).count <= 3)
      #expect(rig.backend.requests.count == 6)
    }
  }

  enum Doubt: CaseIterable, Sendable {
    case unknownAuthority, otherAuthority, otherName, otherAddress, expired, selfSigned
    /// The certificate has the address that the name leads to, or that the URL has where `server_name` differs.
    case addressForName, addressForServerName, nameForServerAddress
    /// The name stands in the subject alone.
    case commonName
  }

  @Test(arguments: Doubt.allCases, ["off", "auto"])
  func `a backend without a valid certificate gets nothing`(doubt: Doubt, http2: String) async throws {
    var backend = try await SecureBackend()
    backend.http2 = http2
    let stranger = try await Certificates()
    var pair = try await backend.certificates.server()
    switch doubt {
    case .unknownAuthority: backend.isKnown = false
    case .otherAuthority: pair = try await stranger.server()
    case .otherName:
      pair = try await backend.certificates.issue("o", subject: "/CN=localhost", names: ["DNS:other.example"])
    case .otherAddress:
      backend.host = "127.0.0.1"
      pair = try await backend.certificates.issue("o", subject: "/CN=127.0.0.1", names: ["DNS:localhost"])
    case .expired:
      pair = try await backend.certificates.issue(
        "o", subject: "/CN=localhost", names: ["DNS:localhost"], days: -1)
    case .selfSigned: pair = stranger.itself
    case .addressForName:
      pair = try await backend.certificates.issue("o", subject: "/CN=localhost", names: ["IP:127.0.0.1"])
    case .addressForServerName:
      (backend.host, backend.tls) = ("127.0.0.1", "server_name: orders.internal")
      pair = try await backend.certificates.issue("o", subject: "/CN=o", names: ["IP:127.0.0.1"])
    case .nameForServerAddress:
      backend.tls = "server_name: 127.0.0.2"
      pair = try await backend.certificates.server()
    case .commonName: pair = try await backend.certificates.issue("o", subject: "/CN=localhost")
    }
    try await backend.run(pair) { rig in
      expectRefused(try await rig.order("k"), 502, "upstream_unreachable", retryable: true)
      let passed = try await rig.order(nil, path: "/open")
      #expect(passed.problem?.code == "upstream_unreachable")
      // A connection that switches protocols is made in another way.
      let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
      let switched = try await rig.semel.client.send("GET", "/open", upgrade)
      #expect(switched.problem?.code == "upstream_unreachable", "\(switched.text)")
      #expect(rig.backend.log.value.begun == 0)
    }
    withExtendedLifetime(stranger) {}
  }

  @Test(arguments: ["off", "auto"])
  func `Semel presents its certificate to a backend that requests one`(http2: String) async throws {
    var backend = try await SecureBackend()
    backend.http2 = http2
    let client = try await backend.certificates.issue("client", subject: "/CN=semel")
    backend.tls = "certificate: \(client.certificate), key: \(client.key)"
    backend.directives = "ssl_client_certificate \(backend.certificates.authority); ssl_verify_client on;"
    try await backend.run { rig in
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map { $0["X-Client"] } == ["CN=semel"])
    }
  }

  @Test(arguments: ["off", "auto"])
  func `a connection that showed a certificate since replaced takes no more requests`(http2: String)
    async throws
  {
    var backend = try await SecureBackend()
    backend.http2 = http2
    let certificates = backend.certificates
    let client = try await certificates.issue("client", subject: "/CN=before")
    backend.tls = "certificate: \(client.certificate), key: \(client.key)"
    backend.directives = "ssl_client_certificate \(certificates.authority); ssl_verify_client on;"
    // One loop has one connection, which would be kept for longer than the test takes.
    let configuration = Configuration(top: ["workers": "1"], upstream: ["idle_timeout": "60s"])
    try await backend.run(nil, configuration) { rig in
      for key in ["k1", "k2"] { expectExecuted(try await rig.order(key)) }
      try await certificates.issue("client", subject: "/CN=after")
      try await rig.semel.process.line(containing: "the TLS files of a backend were read again")
      for key in ["k3", "k4"] { expectExecuted(try await rig.order(key)) }
      #expect(
        rig.backend.requests.map { $0["X-Client"] } == ["CN=before", "CN=before", "CN=after", "CN=after"])
      #expect(Set(rig.backend.requests.map { $0["X-Connection"] }).count == 2)
      // Files that cannot be used change nothing.
      try "nonsense".write(toFile: client.certificate, atomically: true, encoding: .utf8)
      try await rig.semel.process.line(containing: "the TLS files of a backend could not be read again")
      expectExecuted(try await rig.order("k5"))
      #expect(rig.backend.requests.last?["X-Client"] == "CN=after")
    }
  }

  @Test(arguments: ["off", "auto"])
  func `certificates that are renewed under load lose no request, and run none twice`(
    http2: String
  ) async throws {
    var backend = try await SecureBackend()
    backend.http2 = http2
    let certificates = backend.certificates
    let client = try await certificates.issue("client", subject: "/CN=0")
    backend.tls = "certificate: \(client.certificate), key: \(client.key)"
    backend.directives = "ssl_client_certificate \(certificates.authority); ssl_verify_client on;"
    let server = try await certificates.server("listener")
    let port = FreePort.find()
    let configuration = Configuration(
      top: [
        "listen":
          "[{address: '127.0.0.1:\(port)', tls: {certificate: \(server.certificate), key: \(server.key)}}]"
      ],
      // The machine is loaded, with the store on it.
      storeMembers: ["timeout": "5s"], route: ["lease": "10s"])
    try await backend.run(nil, configuration) { rig in
      let hasEnded = Watched(false)
      let count = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<3 {
          group.addTask {
            var rounds = 0
            repeat {
              // Each round by a connection of its own.
              let orders: [(stream: Int, key: String)] = (0..<30).map {
                (2 * $0 + 1, "\(number)-\(rounds)-\($0)")
              }
              let report = try await HTTP2Script(
                port: port, authority: certificates.authority,
                orders.flatMap { stream, key -> [[HTTP2Script.Argument]] in
                  [
                    ["open", .number(stream), HTTP2Script.order(key), true], ["response", .number(stream)],
                  ]
                }
              ).report()
              for order in orders {
                let stream = try report[order.stream]
                #expect(
                  stream.status == 201 && stream.fields["idempotency-status"] == "executed", "\(stream)")
              }
              rounds += 1
            } while !hasEnded.value
            return rounds * 30
          }
        }
        for number in 1...10 {
          try await certificates.server("listener")
          try await certificates.issue("client", subject: "/CN=\(number)")
          try await rig.reload { _ in }
        }
        hasEnded.withValue { $0 = true }
        return try await group.reduce(0, +)
      }
      let requests = rig.backend.requests
      #expect(requests.count == count)
      #expect(Set(requests.map { $0["Idempotency-Key"] }).count == count)
      let last = try await HTTP2Script(
        port: port, authority: certificates.authority,
        [["open", 1, HTTP2Script.order("last"), true], ["response", 1]]
      ).report()
      #expect(try last[1].status == 201)
      #expect(rig.backend.requests.last?["X-Client"] == "CN=10")
      #expect(Set(requests.map { $0["X-Client"] }).count > 1)
    }
  }

  @Test(arguments: ["off", "auto"])
  func `the configured server name is sent and verified`(http2: String) async throws {
    var backend = try await SecureBackend()
    let pair = try await backend.certificates.issue(
      "named", subject: "/CN=any", names: ["DNS:orders.internal"])
    backend.host = "127.0.0.1"
    backend.http2 = http2
    try await backend.run(pair) { rig in
      expectRefused(try await rig.order("k"), 502, "upstream_unreachable", retryable: true)
    }
    backend.tls = "server_name: orders.internal"
    try await backend.run(pair) { rig in
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map { $0["X-Server-Name"] } == ["orders.internal"])
      // The request's own host is none of TLS's business.
      #expect(rig.backend.requests[0]["X-Forwarded-Host"] == "orders.example")
    }
  }

  @Test(arguments: ["off", "auto"])
  func `an IP address is verified as such, and never sent as a name`(http2: String) async throws {
    var backend = try await SecureBackend()
    backend.http2 = http2
    backend.host = "127.0.0.1"
    try await backend.run { rig in
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map { $0["X-Server-Name"] ?? "" } == [""])
    }
  }
}
