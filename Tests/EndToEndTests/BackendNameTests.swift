import Foundation
import TestSupport
import Testing

/// Backends found by name: Semel runs in a mount namespace of its own, with another `/etc/hosts`.
@Suite(.enabled(if: Namespaces.mayBeMade, "no namespaces may be made here"))
struct BackendNameTests {
  /// Runs Semel with these hosts, which may be written anew, before a backend of HTTP/1.1 or, through libcurl, HTTP/2.
  private func run(
    _ hosts: String, speaksHTTP2: Bool,
    _ body: (SemelProcess, _ hosts: String) async throws -> Void
  ) async throws {
    let directory = TemporaryDirectory()
    let file = directory.file("hosts")
    try hosts.write(toFile: file, atomically: false, encoding: .utf8)
    let backend = OrdersBackend()
    var script: ManagedProcess?
    if speaksHTTP2 {
      script = try await Python.serve("http2_backend", ["\(backend.port)"])
    } else {
      try await backend.start()
    }
    var configuration = Configuration()
    configuration.upstream = ["url": "'http://backend.test:\(backend.port)'", "idle_timeout": "0s"]
    if speaksHTTP2 { configuration.upstream["http2"] = "prior_knowledge" }
    let ports = SemelProcess.Ports()
    let semel = try await SemelProcess(
      ports: ports,
      configuration: configuration.text(
        ports: ports, backend: backend.port, storePath: directory.file("semel.db"), redis: nil),
      under: [
        "unshare", "--map-root-user", "--mount", "sh", "-c", #"mount --bind "$0" /etc/hosts && exec "$@""#,
        file,
      ])
    try await body(semel, file)
    try await semel.kill()
    try await backend.stop()
    withExtendedLifetime(script) {}
  }

  private func order(_ key: String, at semel: SemelProcess) async throws -> ReceivedResponse {
    try await semel.client.send("POST", "/v1/orders", Rig.fields(key: key), body: "{}")
  }

  @Test(arguments: [false, true])
  func `if the first address refuses, the next is tried`(speaksHTTP2: Bool) async throws {
    try await run("::1 backend.test\n127.0.0.1 backend.test\n", speaksHTTP2: speaksHTTP2) { semel, _ in
      for number in 0..<3 { expectExecuted(try await order("k\(number)", at: semel)) }
    }
  }

  @Test(arguments: [false, true])
  func `a backend that has moved is found at its name's new address`(speaksHTTP2: Bool) async throws {
    try await run("127.0.0.2 backend.test\n", speaksHTTP2: speaksHTTP2) { semel, hosts in
      expectRefused(try await order("k", at: semel), 502, "upstream_unreachable", retryable: true)
      try "127.0.0.1 backend.test\n".write(toFile: hosts, atomically: false, encoding: .utf8)
      let deadline = ContinuousClock.now + .seconds(20)
      var response = try await order("k", at: semel)
      while response.status != 201, ContinuousClock.now < deadline {
        response = try await order("k", at: semel)
      }
      expectExecuted(response)
    }
  }
}
