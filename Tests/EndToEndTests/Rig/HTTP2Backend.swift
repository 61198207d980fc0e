import TestSupport

/// A backend that speaks HTTP/2, frame by frame as its script has it.
enum HTTP2Backend {
  /// Runs a test on a rig before the backend. `saying` are the script's options.
  static func run(
    isSecure: Bool = true, _ configuration: Configuration = Configuration(), saying: [String] = [],
    _ body: @escaping @Sendable (Rig, ManagedProcess) async throws -> Void
  ) async throws {
    let port = FreePort.find()
    let certificates = try await Certificates()
    let pair = try await certificates.server()
    let backend = try await Python.serve(
      "http2_backend", ["\(port)"] + (isSecure ? [pair.certificate, pair.key] : []) + saying)
    var configuration = configuration
    configuration.upstream["url"] = "'\(isSecure ? "https" : "http")://127.0.0.1:\(port)'"
    configuration.upstream["http2"] = isSecure ? "auto" : "prior_knowledge"
    if isSecure { configuration.upstream["tls"] = "{ca: \(certificates.authority)}" }
    try await Rig.run(configuration) { rig in try await body(rig, backend) }
    withExtendedLifetime(certificates) {}
  }

  /// The number of times that the backend ran a key. Awaits `count`, since its output may come after its responses.
  static func runs(
    of key: String, at backend: ManagedProcess, atLeast count: Int = 1
  ) async throws -> Int {
    try await backend.lines(atLeast: count) {
      $0.hasPrefix("ran ") && $0.split(separator: " ")[3] == key
    }
  }

  /// The number of connections that the backend has seen. Awaits `count`.
  static func connections(to backend: ManagedProcess, atLeast count: Int) async throws -> Int {
    try await backend.lines(atLeast: count) { $0.hasPrefix("connection") }
  }
}
