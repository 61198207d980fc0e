import Foundation
import TestSupport
import Testing

/// Both sides of the wire, scripted byte for byte: each file of `VTC` is a case for Varnish's `varnishtest`, with the
/// real binary between its client and its server.
struct WireScriptTests {
  /// The scripts, by their names.
  private static let scripts: [URL] =
    (Bundle.module.urls(forResourcesWithExtension: "vtc", subdirectory: "VTC") ?? [])
    .map { URL(fileURLWithPath: $0.path ?? "") }
    .sorted { $0.lastPathComponent < $1.lastPathComponent }

  /// Routes under `/v1` and `/small` are protected, the latter with bodies of 64 bytes at most; all else passes
  /// through.
  private static func configuration(_ ports: SemelProcess.Ports, backend: Int, store: String) -> String {
    """
    listen: [{address: '127.0.0.1:\(ports.proxy)'}]
    admin: {address: '127.0.0.1:\(ports.admin)'}
    workers: 1
    upstreams:
      orders: {url: 'http://127.0.0.1:\(backend)', response_timeout: 5s, settle: 6s, connect_retries: 0}
    store: {kind: embedded, path: \(store), timeout: 2s}
    defaults: {caller: {parts: ['header:Authorization']}, lease: 5s}
    routes:
      - {name: small, match: {path: /small/**}, max_request_body: 64B, max_response_body: 64B}
      - {name: orders, match: {path: /v1/**}}

    """
  }

  @Test func `the folder of scripts is not empty`() { #expect(Self.scripts.count >= 60) }

  @Test(arguments: scripts.map(\.lastPathComponent))
  func `every script passes`(script: String) async throws {
    let url = try #require(Self.scripts.first { $0.lastPathComponent == script })
    try await Rig.withSlots {
      let directory = TemporaryDirectory()
      let (ports, backend) = (SemelProcess.Ports(), FreePort.find())
      let semel = try await SemelProcess(
        ports: ports,
        configuration: Self.configuration(ports, backend: backend, store: directory.file("semel.db")))
      let test = try ManagedProcess([
        "varnishtest", "-t", "30", "-D", "semel=127.0.0.1:\(ports.proxy)", "-D",
        "backend=127.0.0.1:\(backend)", url.path,
      ])
      let exit = try await test.exit(within: .seconds(40))
      #expect(exit == .code(0), "\(test.output)\(semel.process.output)\(semel.process.errors)")
      try await semel.kill()
    }
  }
}
