import Foundation
import Idempotency
import Store
import TLS
import TestSupport
import Testing
import Wire

/// Connections with TLS and credentials, on real servers.
@Suite(.timeLimit(.minutes(1)))
struct RedisLoginTests {
  @Test func `records travel over TLS, with a verified name and Semel's own certificate`() async throws {
    let certificates = try await Certificates()
    let server = try await SecureRedis(certificates)
    let own = try await certificates.issue("semel", subject: "/CN=semel")
    var settings = server.settings
    settings.login.tls = try ClientTLS(
      ClientTLSFiles(ca: certificates.authority, certificate: own.certificate, key: own.key))
    for host in ["127.0.0.1", "localhost"] {
      settings.address = .tcp(host: host, port: server.port)
      try await RedisNode.run(settings) { node in
        let claim = try await node.store.completed()
        let sibling = node.sibling()
        let watch = try await sibling.store.watch(claim.id)
        watch.cancel()
        #expect(try await sibling.store.find(claim.id).name == .completed)
        sibling.close()
      }
    }
  }

  @Test func `a server with a foreign certificate or another name is refused`() async throws {
    let certificates = try await Certificates()
    let foreign = try await Certificates()
    // The address counts only where it is what was meant.
    let server = try await SecureRedis(certificates, names: ["DNS:localhost", "IP:127.0.0.1"])
    let own = try await certificates.issue("semel", subject: "/CN=semel")
    for files in [
      ClientTLSFiles(
        ca: foreign.authority, certificate: own.certificate, key: own.key, serverName: "localhost"),
      ClientTLSFiles(
        ca: certificates.authority, certificate: own.certificate, key: own.key, serverName: "other"),
      ClientTLSFiles(ca: certificates.authority, serverName: "localhost"),
    ] {
      var settings = server.settings
      settings.timeout = 1000
      settings.login.tls = try ClientTLS(files)
      try await RedisNode.run(settings) { node in
        await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
        #expect(node.store.store.counters.connections == 0)
      }
    }
  }

  @Test func `a server that speaks nothing newer than TLS 1.1 is refused`() async throws {
    let certificates = try await Certificates()
    let own = try await certificates.server()
    let port = FreePort.find()
    // Of their own accord today's libraries refuse it as well.
    let ciphers = "DEFAULT:@SECLEVEL=0"
    func server(_ protocols: String) async throws -> RedisServer {
      try await RedisServer(arguments: [
        "--tls-port", "\(port)", "--tls-cert-file", own.certificate, "--tls-key-file", own.key,
        "--tls-ca-cert-file", certificates.authority, "--tls-auth-clients", "no", "--tls-protocols",
        protocols,
        "--tls-ciphers", ciphers,
      ])
    }
    var settings = RedisEndpointSettings(address: .tcp(host: "127.0.0.1", port: port))
    settings.timeout = 2000
    settings.login.tls = try ClientTLS(ClientTLSFiles(ca: certificates.authority))
    let old = try await server("TLSv1.1")
    let client = try ManagedProcess([
      "openssl", "s_client", "-connect", "127.0.0.1:\(port)", "-tls1_1", "-cipher", ciphers, "-brief",
    ])
    #expect(try await client.exit() == .code(0), "\(client.errors)")
    #expect(client.errors.contains("Protocol version: TLSv1.1"))
    try await RedisNode.run(settings) { node in
      await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
      #expect(node.store.store.counters.connections == 0)
    }
    old.stop()
    let new = try await server("TLSv1.2")
    settings.timeout = .seconds(10)
    try await RedisNode.run(settings) { node in _ = try await node.store.completed() }
    new.stop()
  }

  @Test func `renewed files are used for the next connection`() async throws {
    let certificates = try await Certificates()
    let foreign = try await Certificates()
    let server = try await SecureRedis(certificates)
    let directory = TemporaryDirectory()
    let (certificate, key) = (directory.file("own.pem"), directory.file("own.key"))
    let stranger = try await foreign.issue("semel", subject: "/CN=semel")
    try replace(stranger, certificate, key)
    var settings = server.settings
    settings.timeout = 1000
    settings.login.tls = try ClientTLS(
      ClientTLSFiles(ca: certificates.authority, certificate: certificate, key: key))
    try await RedisNode.run(settings) { node in
      await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
      try replace(try await certificates.issue("semel", subject: "/CN=semel"), certificate, key)
      try await node.reconnected()
    }
  }

  private func replace(_ pair: Certificates.Pair, _ certificate: String, _ key: String) throws {
    for (from, to) in [(pair.key, key), (pair.certificate, certificate)] {
      try Data(contentsOf: URL(filePath: from)).write(to: URL(filePath: to), options: .atomic)
    }
  }

  @Test func `a changed password file is used without a restart`() async throws {
    let server = try await RedisServer(arguments: ["--user", "semel", "on", ">old", "~*", "&*", "+@all"])
    let directory = TemporaryDirectory()
    let file = directory.file("password")
    try "old".write(toFile: file, atomically: true, encoding: .utf8)
    var settings = RedisEndpointSettings.on(server, timeout: 3000)
    settings.login.user = "semel"
    settings.login.readPassword = { () throws(RedisLogin.Fault) in
      guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
        throw RedisLogin.Fault(reason: "there is no password")
      }
      return Secret(text)
    }
    try await RedisNode.run(settings) { node in
      _ = try await node.store.completed()
      try server.command(["ACL", "SETUSER", "semel", "resetpass", ">new"])
      try server.command(["CLIENT", "KILL", "USER", "semel"])
      try await fails(node, because: "password_file")
      try FileManager.default.removeItem(atPath: file)
      try await fails(node, because: "there is no password")
      try "new".write(toFile: file, atomically: true, encoding: .utf8)
      try await node.reconnected()
    }
  }

  /// Waits until commands fail for a reason with this text.
  private func fails(_ node: RedisNode, because text: String) async throws {
    try await until("commands fail: \(text)") {
      do throws(StoreError) {
        try await node.store.ping()
        return false
      } catch {
        guard case .unavailable(let reason) = error else { return false }
        return reason.contains(text)
      }
    }
  }

  @Test func `a connection in clear to a server with TLS asks whether it speaks TLS`() async throws {
    let server = try await SecureRedis(try await Certificates())
    var settings = server.settings
    settings.timeout = 1000
    try await RedisNode.run(settings) { node in
      try await fails(node, because: "; does it speak TLS? (rediss://)")
    }
    try await finds("; does it speak TLS? (rediss://)", settings)
    settings.topology = .cluster([settings.address])
    try await finds("; does it speak TLS? (tls in the settings)", settings)
  }

  /// Waits until an examination has a finding that ends in this text. A server that is slow to reply has another one.
  private func finds(_ text: String, _ settings: RedisEndpointSettings) async throws {
    try await until("a finding ends in \(text)") {
      await RedisExamination(settings, now: { 0 }).findings().contains { $0.text.hasSuffix(text) }
    }
  }

  @Test func `a connection with TLS to a server in clear asks whether it speaks TLS`() async throws {
    let server = try await RedisServer()
    var settings = RedisEndpointSettings.on(server, timeout: 3000)
    settings.address = .tcp(host: "127.0.0.1", port: server.port)
    let certificates = try await Certificates()
    settings.login.tls = try ClientTLS(ClientTLSFiles(ca: certificates.authority))
    try await RedisNode.run(settings) { node in
      try await fails(node, because: "; does it speak TLS? (redis:// if not)")
    }
    try await finds("; does it speak TLS? (redis:// if not)", settings)
  }

  @Test func `a server that is not there is not asked for TLS`() async throws {
    var settings = RedisEndpointSettings(address: .tcp(host: "127.0.0.1", port: FreePort.find()))
    settings.timeout = 1000
    let findings = await RedisExamination(settings, now: { 0 }).findings().map(\.text)
    #expect(findings.count == 1 && !findings[0].contains("TLS"), "\(findings)")
  }
}
