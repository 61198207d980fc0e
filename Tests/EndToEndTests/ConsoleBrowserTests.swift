import TestSupport
import Testing

/// The console in a real browser.
@Suite(.enabled(if: Chromium.isInstalled, "there is no chromium: run deploy/install test"))
struct ConsoleBrowserTests {
  struct Report: Decodable { let objections: [String] }

  @Test(arguments: ["on", "off"])
  func `an unknown outcome is found, resolved and explained, with and without scripts`(scripts: String)
    async throws
  {
    try await Rig.run(Configuration(admin: ["ui": "{operate: true}"]), within: .seconds(280), slots: 3) {
      rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      let proxy = "http://127.0.0.1:\(rig.semel.ports.proxy)"
      let report: Report = try await Python.run("console_browser", [rig.adminURL, proxy, scripts, "-"])
      #expect(report.objections.isEmpty)
    }
  }
}
