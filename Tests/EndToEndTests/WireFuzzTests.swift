import Foundation
import TestSupport
import Testing

/// Mutated bytes against the real binary, before a backend that reads strictly: nothing is smuggled to it, and nobody
/// gets another's response.
struct WireFuzzTests {
  /// `SEMEL_FUZZ_SECONDS` makes the run longer, `SEMEL_FUZZ_SEED` repeats one.
  private static let environment = ProcessInfo.processInfo.environment
  private static let seconds = environment["SEMEL_FUZZ_SECONDS"].flatMap { Int($0) } ?? 5
  private static let seed = environment["SEMEL_FUZZ_SEED"] ?? "\(UInt32.random(in: 0...UInt32.max))"

  private func fuzz(_ port: Int, _ backend: Int, _ more: [String] = []) async throws -> ManagedProcess {
    // The careless one is found out in a moment, which ends the run.
    let seconds = more.isEmpty ? Self.seconds : 60
    let process = try Python.startPlain(
      "fuzz_wire", ["\(port)", "\(backend)", "\(seconds)", Self.seed] + more)
    try await process.exit(within: .seconds(seconds + 60))
    return process
  }

  @Test func `no bytes make the proxy smuggle a request or mix up responses`() async throws {
    try await Rig.withSlots(Rig.allSlots) {
      let (ports, backend, directory) = (SemelProcess.Ports(), FreePort.find(), TemporaryDirectory())
      let semel = try await SemelProcess(
        ports: ports,
        configuration: """
          listen: [{address: '127.0.0.1:\(ports.proxy)'}]
          admin: {address: '127.0.0.1:\(ports.admin)'}
          workers: 2
          log: {level: warning}
          limits: {body_timeout: 2s, write_timeout: 2s}
          upstreams: {orders: {url: 'http://127.0.0.1:\(backend)', response_timeout: 5s, settle: 0s}}
          store: {kind: embedded, path: \(directory.file("semel.db"))}
          routes:
            - {name: orders, match: {path: /v1/**}, caller: {parts: ['header:Authorization']}, lease: 2s}

          """)
      let process = try await fuzz(ports.proxy, backend)
      let exit = try await process.exit()
      #expect(exit == .code(0), "\(process.output)\(process.errors)")
      print(process.output, terminator: "")
      // Of HTTP/2 as well, which has a way of its own to the same requests.
      for word in ["responses2", "refused2"] {
        #expect(process.output.contains(word) && !process.output.contains("\(word)=0 "), "\(process.output)")
      }
      // It reached the backend, and Semel had to refuse: the run was about something.
      #expect(try await semel.counter("semel_requests_total", label: "outcome=\"executed\"") > 0)
      #expect(try await semel.counter("semel_requests_total", label: "outcome=\"passed\"") > 0)
      #expect(try await semel.counter("semel_framing_errors_total") > 0)
      #expect(semel.process.state.value.exit == nil)
      try await semel.kill()
    }
  }

  @Test func `the same bytes find a careless relay out`() async throws {
    let process = try await fuzz(FreePort.find(), FreePort.find(), ["careless"])
    let exit = try await process.exit()
    #expect(exit == .code(1))
    #expect(
      process.output.contains("FAULT: the backend read "),
      "\(process.output)")
  }
}
