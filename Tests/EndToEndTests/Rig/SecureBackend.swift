import TestSupport

/// A rig whose backend stands behind nginx and TLS.
struct SecureBackend {
  /// Of the backend's authority.
  let certificates: Certificates
  /// The backend's name in the upstream's url.
  var host = "localhost"
  var http2 = "off"
  /// Members of the upstream's `tls`, over its `ca`.
  var tls = ""
  /// Whether Semel knows the authority.
  var isKnown = true
  var speaksHTTP2 = true
  /// Directives of nginx.
  var directives = ""

  init() async throws { certificates = try await Certificates() }

  func run(
    _ pair: Certificates.Pair? = nil, _ configuration: Configuration = Configuration(),
    within span: Duration = .seconds(120), _ body: @escaping @Sendable (Rig) async throws -> Void
  ) async throws {
    let ownPair = if let pair { pair } else { try await certificates.server() }
    let port = FreePort.find()
    var configuration = configuration
    let authority = isKnown ? "ca: \(certificates.authority)" : ""
    configuration.upstream["url"] = "'https://\(host):\(port)'"
    configuration.upstream["http2"] = http2
    configuration.upstream["tls"] = "{\([authority, tls].filter { !$0.isEmpty }.joined(separator: ", "))}"
    try await Rig.run(configuration, within: span) { [self] rig in
      let nginx = try await NginxBackend(
        port: port, before: rig.backend.port, ownPair, speaksHTTP2: speaksHTTP2, directives)
      try await body(rig)
      withExtendedLifetime(nginx) {}
    }
  }
}
