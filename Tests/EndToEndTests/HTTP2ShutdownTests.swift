import TestSupport
import Testing

/// SIGTERM while clients speak HTTP/2.
struct HTTP2ShutdownTests {
  @Test(arguments: StoreKind.allCases)
  func `streams finish, the client gets GOAWAY, and then the connection ends`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      let busy = try HTTP2Script(
        port: rig.semel.ports.proxy,
        [
          ["open", 1, HTTP2Script.order("k", [["content-type", "application/json"]]), false],
          ["data", 1, "{}", true], ["goaway", 2], ["note", "told"], ["response", 1], ["end"],
        ])
      let idle = try HTTP2Script(port: rig.semel.ports.proxy, [["note", "here"], ["goaway", 1], ["end"]])
      try await idle.says("here")
      try await rig.backend.arrived(1)
      rig.semel.terminate()
      #expect(try await idle.report().goaways.first?.code == 0)
      try await busy.says("told")
      gate.open()
      let report = try await busy.report()
      #expect(try report[1].body == "once")
      #expect(report.goaways.prefix(2).map(\.last) == [Int(Int32.max), 1])
      #expect(report.closed)
      #expect(try await rig.semel.process.exit() == .code(0))
      try await rig.semel.start()
      expectReplayed(try await rig.order("k", body: "{}"), 201)
    }
  }
}
