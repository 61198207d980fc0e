import Glibc
import TestSupport
import Testing

/// SIGTERM: what is in flight is finished and recorded.
struct ShutdownTests {
  @Test(arguments: StoreKind.allCases)
  func `what is in flight is finished and recorded`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      let idle = try await RawClient(port: rig.semel.ports.proxy)
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      rig.semel.terminate()
      try await idle.closedByPeer()
      // No longer accepted: refused, or cut before an answer.
      if let late = try? await rig.order("late", within: .seconds(2)) {
        #expect(late.problem?.code == "overloaded")
      }
      #expect(rig.semel.process.state.value.exit == nil)
      gate.open()
      let answer = try await connection.answer()
      expectExecuted(answer)
      #expect(try await rig.semel.process.exit() == .code(0))
      #expect(rig.backend.requests.count == 1)

      try await rig.semel.start()
      expectReplayed(try await rig.order("k"), of: answer)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `what outlasts the grace is marked unknown at once`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, top: ["shutdown_grace": "1s"], route: ["lease": "60s", "wait_timeout": "20s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      let passed = try await RawClient(port: rig.semel.ports.proxy)
      rig.backend.on("/open") { _ in Reply(gate: gate) }
      try await passed.send(Rig.orderText(nil, path: "/open"))
      let id = try #require(try await rig.backend.arrived(2)[0].requestID)
      let process = rig.semel.process
      rig.semel.terminate()
      try await process.exit(within: .seconds(10))
      let lines = process.output.split(separator: "\n") + process.errors.split(separator: "\n")
      let cut = lines.filter { $0.contains(#""outcome":"cut""#) }
      #expect(cut.count == 2 && cut.count { $0.contains(#""record":"\#(id)""#) } == 1, "\(cut)")
      #expect(cut.allSatisfy { $0.contains(#""method":"POST""#) }, "\(cut)")
      let marked = lines.filter { $0.contains("a record is marked unknown") }
      #expect(
        marked.count == 1 && marked[0].contains(id) && marked[0].contains(#""route":"orders""#), "\(marked)")
      try await rig.semel.start()
      let start = ContinuousClock.now
      let after = try await rig.order("k")
      #expect(after.problem?.code == "outcome_unknown")
      // Nobody had to wait for the lease of a minute.
      #expect(ContinuousClock.now - start < .seconds(10))
      #expect(rig.backend.runs(of: "k") == 1)
      gate.open()
    }
  }

  @Test func `it is not ready while it drains, and still accepts`() async throws {
    try await Rig.run(Configuration(top: ["drain_delay": "3s"])) { rig in
      rig.semel.terminate()
      try await rig.semel.page("/readyz", becomes: 503, within: .seconds(2))
      expectExecuted(try await rig.order("k"))
      #expect(try await rig.semel.process.exit(within: .seconds(15)) == .code(0))
    }
  }

  @Test func `an idle process ends at once`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k"))
      let start = ContinuousClock.now
      rig.semel.terminate()
      #expect(try await rig.semel.process.exit() == .code(0))
      #expect(ContinuousClock.now - start < .seconds(5))
    }
  }

  @Test func `Ctrl-C ends it in the same way`() async throws {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let idle = try await RawClient(port: rig.semel.ports.proxy)
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      rig.semel.process.signal(SIGINT)
      try await idle.closedByPeer()
      gate.open()
      expectExecuted(try await first)
      #expect(try await rig.semel.process.exit() == .code(0))
    }
  }
}
