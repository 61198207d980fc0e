import TestSupport
import Testing

/// `semel demo`, as a newcomer meets it.
struct DemoTests {
  @Test func `the commands that the demo prints work as printed`() async throws {
    try Tool.require("curl")
    try await Rig.withSlots {
      let (port, backendPort) = (FreePort.find(), FreePort.find())
      let demo = try ManagedProcess([
        SemelProcess.binary, "demo", "--port", "\(port)", "--backend-port", "\(backendPort)",
      ])
      let introduction = try await demo.state.until("what to try") { state in
        let text = String(decoding: state.output, as: UTF8.self)
        return text.contains("5. ") && text.contains("listening") ? text : nil
      }
      let steps = Self.commands(in: introduction)
      #expect(steps.count == 5)
      for (number, expected) in [
        (0, "Idempotency-Status: executed"), (1, "Idempotency-Status: replayed"), (2, "payload_mismatch"),
        (3, #""id":"ord_2""#), (4, #""executed":2"#),
      ] {
        let shell = try ManagedProcess(["bash", "-c", steps[number]])
        try await shell.exit()
        #expect(shell.output.contains(expected), "\(steps[number]): \(shell.output)\(shell.errors)")
      }
      demo.signal(2)
      #expect(try await demo.exit() == .code(0))
    }
  }

  @Test func `a demo whose port is in use reports it, and prints no introduction`() async throws {
    try await Rig.withSlots {
      let taken = OrdersBackend()
      try await taken.start()
      for (port, backendPort) in [(taken.port, FreePort.find()), (FreePort.find(), taken.port)] {
        let demo = try ManagedProcess([
          SemelProcess.binary, "demo", "--port", "\(port)", "--backend-port", "\(backendPort)",
        ])
        #expect(try await demo.exit() == .code(1))
        #expect(!demo.output.contains("curl"), "\(demo.output)")
        #expect(
          demo.errors.contains("cannot listen on 127.0.0.1:\(taken.port): Address already in use"),
          "\(demo.errors)")
      }
      try await taken.stop()
    }
  }

  /// The commands of each numbered step: the lines that are indented below it.
  private static func commands(in text: String) -> [String] {
    var steps: [[Substring]] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.first?.isNumber == true {
        steps.append([])
      } else if line.hasPrefix("   "), !steps.isEmpty {
        steps[steps.count - 1].append(line)
      }
    }
    return steps.map { $0.joined(separator: "\n") }
  }
}
