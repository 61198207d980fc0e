import Foundation
import TestSupport
import Testing

/// Listeners with TLS.
struct TLSTests {
  @Test(arguments: [("--http2", "HTTP/2 201"), ("--http1.1", "HTTP/1.1 201")])
  func `the client chooses between HTTP 2 and 1`(option: String, status: String) async throws {
    try await SecureRig.run { secure in
      let first = try await secure.order("k", [option])
      #expect(
        first.hasPrefix(status) && first.lowercased().contains("idempotency-status: executed"), "\(first)")
      let again = try await secure.order("k", [option])
      #expect(again.lowercased().contains("idempotency-status: replayed"), "\(again)")
      let request = try #require(secure.rig.backend.requests.first)
      #expect(secure.rig.backend.requests.count == 1)
      #expect(request["X-Forwarded-Proto"] == "https")
    }
  }

  @Test func `unfinished handshakes leave room for other connections`() async throws {
    let limits = "{max_connections: 60, header_timeout: 20s}"
    try await SecureRig.run(Configuration(top: ["limits": limits])) { secure in
      var halfOpen: [RawClient] = []
      // The beginning of a ClientHello.
      for _ in 0..<70 {
        let client = try await RawClient(port: secure.port)
        try? await client.send([0x16, 3, 1, 2, 0, 1])
        halfOpen.append(client)
      }
      for number in 0..<5 {
        let response = try await secure.order("k\(number)")
        #expect(response.lowercased().contains("idempotency-status: executed"), "\(response)")
      }
      #expect(try await secure.rig.semel.counter("semel_open_connections") < 30)
      withExtendedLifetime(halfOpen) {}
    }
  }

  @Test(arguments: [true, false])
  func `connections that make room for others of the same read give their slots back`(
    hasHeader: Bool
  ) async throws {
    let port = FreePort.find()
    let certificates = try await Certificates()
    let server = try await certificates.server()
    let tls = "tls: {certificate: \(server.certificate), key: \(server.key)}"
    // One of a client may be unfinished, or two whose headers have not come.
    let top = [
      "listen": "[{address: '127.0.0.1:\(port)', proxy_protocol: \(hasHeader), \(tls)}]",
      "limits": "{max_connections: 8, header_timeout: 60s}", "workers": "1",
    ]
    let stay = hasHeader ? 2 : 1
    try await Rig.run(Configuration(top: top)) { rig in
      var clients: [RawClient] = []
      for crowd in 1...10 {
        // They connect to the kernel, and are accepted in one turn.
        rig.semel.freeze()
        for _ in 0..<3 { clients.append(try await RawClient(port: port)) }
        rig.semel.thaw()
        try await rig.semel.counter("semel_connections_total", isAtLeast: 3 * crowd)
      }
      try await rig.semel.counter("semel_open_connections", becomes: stay)
      for client in clients.dropLast(stay) { try await client.closedByPeer() }
      #expect(clients.suffix(stay).allSatisfy { !$0.inbox.value.isClosed })
      #expect(try await rig.semel.counter("semel_connections_refused_total") == 0)
    }
  }

  @Test(arguments: [true, false])
  func `unfinished handshakes behind a load balancer do not count as one client's`(
    hasHeader: Bool
  ) async throws {
    let port = FreePort.find()
    let certificates = try await Certificates()
    let server = try await certificates.server()
    let listen =
      "[{address: '127.0.0.1:\(port)', proxy_protocol: \(hasHeader), "
      + "tls: {certificate: \(server.certificate), key: \(server.key)}}]"
    // Fifteen may be unfinished, and seven of one client.
    let top = [
      "listen": listen, "limits": "{max_connections: 60, header_timeout: 60s}",
      "trusted_proxies": hasHeader ? "[]" : "[127.0.0.1]",
    ]
    try await Rig.run(Configuration(top: top)) { rig in
      func open(_ count: Int, _ address: (Int) -> String?) async throws -> [RawClient] {
        var clients: [RawClient] = []
        for number in 0..<count {
          let client = try await RawClient(port: port)
          clients.append(client)
          guard let address = address(number) else { continue }
          let header = hasHeader ? "PROXY TCP4 \(address) 127.0.0.1 1 2\r\n" : ""
          // The beginning of a ClientHello.
          try? await client.send(Array(header.utf8) + [0x16, 3, 1, 2, 0, 1])
        }
        return clients
      }
      let clients = try await open(12) { "192.0.2.\($0)" }
      try await rig.semel.counter("semel_open_connections", becomes: 12)
      try await rig.semel.counter("semel_connections_total", isAtLeast: 12)
      #expect(clients.allSatisfy { !$0.inbox.value.isClosed })
      guard hasHeader else { return }
      // A crowd of one client takes nobody else's place.
      let crowd = try await open(20) { _ in "198.51.100.1" }
      try await rig.semel.counter("semel_connections_total", isAtLeast: 32)
      try await rig.semel.counter("semel_open_connections", becomes: 15)
      // Nor does a crowd of nobody yet: connections whose header has not been read.
      let nameless = try await open(20) { _ in nil }
      try await rig.semel.counter("semel_connections_total", isAtLeast: 52)
      try await rig.semel.counter("semel_open_connections", becomes: 30)
      #expect(clients.allSatisfy { !$0.inbox.value.isClosed })
      withExtendedLifetime((crowd, nameless)) {}
    }
  }

  @Test func `HTTP 2 may be used without ALPN`() async throws {
    try await SecureRig.run { secure in
      let report = try await HTTP2Script(
        port: secure.port, authority: secure.certificates.authority,
        [["open", 1, HTTP2Script.order("k"), true], ["response", 1]]
      ).report()
      #expect(try report[1].status == 201)
    }
  }

  @Test func `broken versions and ciphers are refused`() async throws {
    try await SecureRig.run { secure in
      let weak = ["-cipher", "ALL:@SECLEVEL=0"]
      for version in ["-tls1", "-tls1_1"] {
        let output = try await secure.handshake([version] + weak)
        #expect(output.contains("alert") || output.contains("no protocols"), "\(output)")
        #expect(output.contains("Cipher is (NONE)"), "\(output)")
      }
      for cipher in ["AES128-SHA", "AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-SHA"] {
        let output = try await secure.handshake(["-tls1_2", "-cipher", "\(cipher):@SECLEVEL=0"])
        #expect(output.contains("Cipher is (NONE)"), "\(cipher): \(output)")
      }
      for version in ["-tls1_2", "-tls1_3"] {
        let output = try await secure.handshake([version, "-alpn", "h2"])
        #expect(output.contains("Verification: OK") && output.contains("ALPN protocol: h2"), "\(output)")
      }
    }
  }

  @Test(arguments: ["--http2", "--http1.1"])
  func `a client's certificate identifies the caller`(option: String) async throws {
    let configuration = Configuration(route: ["caller": "{parts: [client_certificate]}"])
    try await SecureRig.run(configuration, asksClients: true) { secure in
      let alice = try await secure.certificates.issue(
        "alice", subject: "/CN=one", names: ["URI:spiffe://shop/alice"])
      let bob = try await secure.certificates.issue(
        "bob", subject: "/CN=one", names: ["URI:spiffe://shop/bob"])
      let unnamed = try await secure.certificates.issue("unnamed", subject: "/CN=one")
      for client in [alice, bob, unnamed] {
        let first = try await secure.order("k", as: client, [option])
        #expect(first.lowercased().contains("idempotency-status: executed"), "\(first)")
      }
      // Renewed, with another key and another subject, it names the same.
      let renewed = try await secure.certificates.issue(
        "renewed", subject: "/CN=two", names: ["URI:spiffe://shop/alice"])
      let again = try await secure.order("k", as: renewed, [option])
      #expect(again.lowercased().contains("idempotency-status: replayed"), "\(again)")
      #expect(secure.rig.backend.requests.count == 3)
      let nobody = try await secure.order("k", [option])
      #expect(nobody.contains("401") && nobody.contains(#""code":"caller_unknown""#), "\(nobody)")
      // One that another authority has signed is nobody's: the handshake fails.
      let strange = try await Certificates().issue(
        "alice", subject: "/CN=one", names: ["URI:spiffe://shop/alice"])
      let refused = try await secure.order("k", as: strange, [option])
      #expect(!refused.contains("HTTP/"), "\(refused)")
      #expect(secure.rig.backend.requests.count == 3)
    }
  }

  @Test func `one name from two authorities is two callers`() async throws {
    let (ours, theirs) = (try await Certificates(), try await Certificates())
    let server = try await ours.server()
    let ports = [FreePort.find(), FreePort.find()]
    let tls = "certificate: \(server.certificate), key: \(server.key)"
    let configuration = Configuration(
      top: [
        "listen": "[{address: '127.0.0.1:\(ports[0])', tls: {\(tls), client_ca: \(ours.authority)}}, "
          + "{address: '127.0.0.1:\(ports[1])', tls: {\(tls), client_ca: \(theirs.authority), client_ca_name: theirs}}]"
      ], route: ["caller": "{parts: [client_certificate]}"])
    try await Rig.run(configuration) { rig in
      for (port, authority) in zip(ports, [ours, theirs]) {
        let alice = try await authority.issue("alice", subject: "/CN=a", names: ["DNS:alice"])
        let secure = SecureRig(rig: rig, certificates: ours, server: server, port: port)
        for status in ["executed", "replayed"] {
          let response = try await secure.order("k", as: alice)
          #expect(response.lowercased().contains("idempotency-status: \(status)"), "\(response)")
        }
      }
      #expect(rig.backend.requests.count == 2)
      withExtendedLifetime(theirs) {}
    }
  }

  @Test func `a client without a certificate may be an empty caller`() async throws {
    let configuration = Configuration(
      route: ["caller": "{parts: ['client_certificate:subject'], anonymous: allow}"])
    try await SecureRig.run(configuration, asksClients: true) { secure in
      let alice = try await secure.certificates.issue("alice", subject: "/CN=alice")
      #expect(try await secure.order("k").contains("executed"))
      #expect(try await secure.order("k").contains("replayed"))
      #expect(try await secure.order("k", as: alice).contains("executed"))
      #expect(secure.rig.backend.requests.count == 2)
    }
  }

  @Test func `a renewed certificate is used, and a bad one is not`() async throws {
    try await SecureRig.run { secure in
      let gate = Gate()
      secure.rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      // A connection that outlives the renewal.
      let old = try HTTP2Script(
        port: secure.port, authority: secure.certificates.authority,
        [
          ["open", 1, HTTP2Script.order("k"), true], ["response", 1],
          ["open", 3, HTTP2Script.order("late"), true],
          ["response", 3],
        ])
      try await secure.rig.backend.arrived(1)
      #expect(try await secure.handshake([]).contains("subject=CN = localhost"))
      try await secure.certificates.server(subject: "/CN=renewed")
      try await secure.rig.semel.process.line(containing: "a certificate was read again")
      #expect(try await secure.handshake([]).contains("subject=CN = renewed"))
      try "nonsense".write(toFile: secure.server.certificate, atomically: true, encoding: .utf8)
      try await secure.rig.semel.process.line(containing: "the one before stays in use")
      #expect(try await secure.handshake([]).contains("subject=CN = renewed"))
      gate.open()
      #expect(try await old.report()[3].status == 201)
    }
  }

  @Test func `SIGHUP reloads a certificate whose file looks unchanged`() async throws {
    try await SecureRig.run { secure in
      try await secure.rig.reload { _ in }
      try await secure.rig.semel.process.line(containing: "a certificate was read again")
      #expect(try await secure.handshake([]).contains("subject=CN = localhost"))
    }
  }

  @Test func `a cut response does not end in an orderly way`() async throws {
    try await SecureRig.run(Configuration(route: ["idempotency": "off"])) { secure in
      secure.rig.backend.on("/v1/orders") { _ in
        Reply(200, [], content: .filler(300_000), framing: .chunked, ending: .cut(after: 200_000))
      }
      // To HTTP/1.0 the connection's end is the response's.
      for option in ["--http1.0", "--http1.1", "--http2"] {
        let curl = try ManagedProcess([
          "curl", "--silent", "--output", "/dev/null", option, "--cacert", secure.certificates.authority,
          "https://localhost:\(secure.port)/v1/orders",
        ])
        #expect(try await curl.exit() != .code(0))
      }
    }
  }

  @Test(arguments: ["-tls1_2", "-tls1_3"])
  func `a resumed session keeps its caller`(version: String) async throws {
    let configuration = Configuration(route: ["caller": "{parts: [client_certificate]}"])
    try await SecureRig.run(configuration, asksClients: true) { secure in
      let alice = try await secure.certificates.issue("alice", subject: "/CN=alice")
      let directory = TemporaryDirectory()
      func order(_ session: String) async throws -> String {
        try Rig.orderText("k", [("Connection", "close")]).write(
          toFile: directory.file("request"), atomically: true, encoding: .utf8)
        let process = try ManagedProcess([
          "sh", "-c",
          "openssl s_client -quiet -ign_eof \(version) -connect 127.0.0.1:\(secure.port) "
            + "-cert \(alice.certificate) -key \(alice.key) \(session) \(directory.file("session")) "
            + "< \(directory.file("request"))",
        ])
        try await process.exit()
        return process.output + process.errors
      }
      let first = try await order("-sess_out")
      #expect(first.contains("Idempotency-Status: executed"), "\(first)")
      let again = try await order("-sess_in")
      #expect(again.contains("Idempotency-Status: replayed"), "\(again)")
      #expect(secure.rig.backend.requests.count == 1)
    }
  }

  @Test func `a client without TLS, or with an unfinished handshake, is cut off`() async throws {
    try await SecureRig.run(Configuration(top: ["limits": "{header_timeout: 4s}"])) { secure in
      let plain = try await RawClient(port: secure.port)
      try await plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      let output = try await plain.closedByPeer()
      #expect(!String(decoding: output, as: UTF8.self).contains("HTTP/1.1"))
      let silent = try await RawClient(port: secure.port)
      #expect(try await silent.closedByPeer().isEmpty)
      #expect(try await secure.order("k").contains("executed"))
    }
  }

  @Test func `a key that does not match the certificate is reported before anybody connects`() async throws {
    let certificates = try await Certificates()
    let server = try await certificates.server()
    let other = try await certificates.server("other")
    let directory = TemporaryDirectory()
    func check(_ certificate: String, _ key: String, _ clientCA: String) async throws -> String {
      let text = """
        listen:
          - address: 127.0.0.1:8443
            tls:
              certificate: \(certificate)
              key: \(key)
              client_ca: \(clientCA)
        upstreams: {orders: {url: "http://127.0.0.1:9000"}}
        routes: [{name: all, caller: {parts: [address]}}]
        """
      try text.write(toFile: directory.file("c.yaml"), atomically: true, encoding: .utf8)
      let process = try ManagedProcess([SemelProcess.binary, "check", directory.file("c.yaml")])
      let exit = try await process.exit()
      let isGood = process.errors.split(separator: "\n").allSatisfy { $0.hasPrefix("warning: ") }
      #expect(exit == (isGood ? .code(0) : .code(78)))
      return process.errors.replacing(directory.file("c.yaml"), with: "FILE")
    }
    #expect(try await check(server.certificate, server.key, certificates.authority) == "")
    let old = try await certificates.issue(
      "old", subject: "/CN=localhost", names: ["DNS:localhost"], days: -1)
    #expect(try await check(old.certificate, old.key, certificates.authority).contains("ended on 20"))
    #expect(
      try await check(server.certificate, other.key, certificates.authority)
        == "FILE:5:12: listen[0].tls.key: does not belong to the certificate\n")
    #expect(
      try await check(server.key, server.key, certificates.authority)
        == "FILE:4:20: listen[0].tls.certificate: holds no certificate in PEM\n")
    #expect(
      try await check(server.certificate, server.certificate, certificates.authority)
        == "FILE:5:12: listen[0].tls.key: holds no private key in PEM, or one with a passphrase\n")
    let missing = "names /nowhere, which does not exist; give the path of a PEM file"
    #expect(
      try await check("/nowhere", "/nowhere", "/nowhere")
        == """
        FILE:4:20: listen[0].tls.certificate: \(missing)
        FILE:5:12: listen[0].tls.key: \(missing)
        FILE:6:18: listen[0].tls.client_ca: \(missing)

        """)
    #expect(
      try await check(server.certificate, server.key, "/nowhere")
        == "FILE:6:18: listen[0].tls.client_ca: \(missing)\n")
  }
}
