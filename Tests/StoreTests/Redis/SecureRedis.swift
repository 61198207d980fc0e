import Idempotency
import Store
import TLS
import TestSupport
import Wire

/// A server that speaks TLS alone on its port, and wants clients' certificates.
struct SecureRedis {
  let certificates: Certificates
  let server: RedisServer
  let port: Int

  init(_ certificates: Certificates, names: [String] = ["DNS:localhost", "IP:127.0.0.1"]) async throws {
    self.certificates = certificates
    let own = try await certificates.issue("server", subject: "/CN=localhost", names: names)
    port = FreePort.find()
    server = try await RedisServer(arguments: [
      "--tls-port", "\(port)", "--tls-cert-file", own.certificate, "--tls-key-file", own.key,
      "--tls-ca-cert-file", certificates.authority, "--tls-auth-clients", "yes",
    ])
  }

  /// The settings of a store that has no certificate yet.
  var settings: RedisEndpointSettings {
    var settings = RedisEndpointSettings.on(server)
    settings.address = .tcp(host: "127.0.0.1", port: port)
    return settings
  }

  /// The settings of a store with a certificate of its own.
  func trusted() async throws -> RedisEndpointSettings {
    let own = try await certificates.issue("semel", subject: "/CN=semel")
    var settings = settings
    settings.login.tls = try ClientTLS(
      ClientTLSFiles(ca: certificates.authority, certificate: own.certificate, key: own.key))
    return settings
  }
}
