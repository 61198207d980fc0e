import Foundation
import TestSupport
import Testing

/// Listeners whose address cannot be taken: the message names the member or the option, and the way out.
struct ListenFaultTests {
  /// The last line on standard error of a Semel that cannot start with these listeners.
  private func fault(_ listen: [String], admin: String? = nil) async throws -> String {
    let directory = TemporaryDirectory()
    try String(repeating: "t", count: 32).write(
      toFile: directory.file("token"), atomically: true, encoding: .utf8)
    let addresses = listen.map { "{address: '\($0)'}" }.joined(separator: ", ")
    let operators = admin.map { "admin: {address: '\($0)', token_file: \(directory.file("token"))}" } ?? ""
    try """
    listen: [\(addresses)]
    \(operators)
    upstreams: {orders: {url: 'http://127.0.0.1:1'}}
    store: {kind: embedded, path: \(directory.file("semel.db"))}
    routes: [{name: orders, match: {path: /v1/**}, caller: {parts: [address]}}]
    """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let process = try ManagedProcess([SemelProcess.binary, "run", directory.file("semel.yaml")])
    #expect(try await process.exit() == .code(1), "\(process.output)\(process.errors)")
    return String(process.errors.split(separator: "\n").last ?? "")
  }

  /// An orchestrator's probes meet the admin listener before the proxy listens.
  @Test func `a start that fails while operators connect ends with its reason`() async throws {
    let taken = OrdersBackend()
    try await taken.start()
    let (busy, admin) = ("127.0.0.1:\(taken.port)", FreePort.find())
    let probes = Task {
      while !Task.isCancelled {
        guard let probe = try? await RawClient(port: admin) else { continue }
        try? await probe.close()
      }
    }
    for _ in 0..<20 {
      let reason = try await fault([busy], admin: "127.0.0.1:\(admin)")
      #expect(reason.hasPrefix("semel: cannot listen on \(busy)"), "\(reason)")
    }
    probes.cancel()
    await probes.value
    try await taken.stop()
  }

  private static func inUse(_ address: String, _ advice: String) -> String {
    "semel: cannot listen on \(address): Address already in use; \(advice)"
  }

  @Test func `a busy address is named with its member`() async throws {
    let taken = OrdersBackend()
    try await taken.start()
    let (busy, free) = ("127.0.0.1:\(taken.port)", "127.0.0.1:\(FreePort.find())")
    let listener = try await fault([free, busy])
    #expect(
      listener
        == Self.inUse(busy, "end what listens there, or give another address in listen[1].address"))
    let admin = try await fault([free], admin: busy)
    #expect(
      admin == Self.inUse(busy, "end what listens there, or give another address in admin.address"))
    try await taken.stop()
  }

  @Test func `another listener that may have the address by its name is named`() async throws {
    let port = FreePort.find()
    // The name is one of these addresses.
    let addresses = ["127.0.0.1:\(port)", "[::1]:\(port)"]
    let text = try await fault(["localhost:\(port)"] + addresses)
    let expected = addresses.enumerated().map { index, address in
      Self.inUse(
        address,
        "listen[0].address is localhost:\(port), which may have it already: give another address in "
          + "listen[\(index + 1)].address")
    }
    #expect(expected.contains(text), "\(text)")
  }

  @Test func `an address of another machine is named with its member`() async throws {
    let address = "192.0.2.1:\(FreePort.find())"
    let text = try await fault([address])
    #expect(
      text
        == "semel: cannot listen on \(address): Cannot assign requested address; this machine has no such address: "
        + "write one of its own, such as 127.0.0.1, or 0.0.0.0 for all of them, in listen[0].address")
  }

  @Test func `a demo on a busy port names its option`() async throws {
    try await Rig.withSlots {
      let taken = OrdersBackend()
      try await taken.start()
      for option in ["--port", "--backend-port"] {
        let other = option == "--port" ? "--backend-port" : "--port"
        let demo = try ManagedProcess([
          SemelProcess.binary, "demo", option, "\(taken.port)", other, "\(FreePort.find())",
        ])
        #expect(try await demo.exit() == .code(1))
        let text = Self.inUse(
          "127.0.0.1:\(taken.port)", "end what listens there, or give another port by \(option)")
        #expect(demo.errors == text + "\n", "\(demo.errors)")
      }
      try await taken.stop()
    }
  }

  @Test func `a demo with one port for both is refused`() async throws {
    let demo = try ManagedProcess([SemelProcess.binary, "demo", "--port", "7", "--backend-port", "7"])
    #expect(try await demo.exit() == .code(2))
    #expect(demo.errors.contains("--port and --backend-port are both 7: give two ports"), "\(demo.errors)")
  }
}
