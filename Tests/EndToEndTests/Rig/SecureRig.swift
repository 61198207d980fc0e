import TestSupport

/// A listener with TLS, what its clients need, and `curl` as one of them.
struct SecureRig: Sendable {
  let rig: Rig
  let certificates: Certificates
  /// The listener's own.
  let server: Certificates.Pair
  let port: Int

  /// Starts a rig whose listener has a certificate.
  ///
  /// - Parameter asksClients: whether clients may prove themselves with a certificate of the same authority.
  static func run(
    _ configuration: Configuration = Configuration(), asksClients: Bool = false,
    _ body: @escaping @Sendable (SecureRig) async throws -> Void
  ) async throws {
    let certificates = try await Certificates()
    let server = try await certificates.server()
    let port = FreePort.find()
    let clientCA = asksClients ? ", client_ca: \(certificates.authority)" : ""
    var configuration = configuration
    configuration.top["listen"] =
      "[{address: '127.0.0.1:\(port)', "
      + "tls: {certificate: \(server.certificate), key: \(server.key)\(clientCA)}}]"
    try await Rig.run(configuration) { rig in
      try await body(SecureRig(rig: rig, certificates: certificates, server: server, port: port))
    }
  }

  /// Places an order with `curl`; its whole output.
  func order(_ key: String, as client: Certificates.Pair? = nil, _ more: [String] = []) async throws -> String
  {
    let identity = client.map { ["--cert", $0.certificate, "--key", $0.key] } ?? []
    let process = try ManagedProcess(
      [
        "curl", "--silent", "--show-error", "--include", "--cacert", certificates.authority, "--header",
        "Idempotency-Key: \(key)", "--header", "Authorization: Bearer alice", "--json", "{}",
      ] + identity + more + ["https://localhost:\(port)/v1/orders"])
    try await process.exit()
    return process.output + process.errors
  }

  /// The report of `openssl s_client` on a handshake.
  func handshake(_ arguments: [String]) async throws -> String {
    let process = try ManagedProcess(
      ["openssl", "s_client", "-connect", "127.0.0.1:\(port)", "-CAfile", certificates.authority] + arguments)
    try await process.exit()
    return process.output + process.errors
  }
}
