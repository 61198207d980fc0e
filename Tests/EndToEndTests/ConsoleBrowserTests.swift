import Foundation
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

  struct Examination: Decodable {
    let looked: [String]
    let violations: [String]
  }

  @Test func `axe finds no violation of WCAG 2_2 AA on any page, in both schemes`() async throws {
    let directory = TemporaryDirectory()
    let token = "operator-0123456789"
    try token.write(toFile: directory.file("token"), atomically: true, encoding: .utf8)
    let configuration = Configuration(admin: ["token_file": directory.file("token")])
    try await Rig.run(configuration, within: .seconds(280), slots: 3) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(201, body: "{}"), .unanswered])
      let proxy = "http://127.0.0.1:\(rig.semel.ports.proxy)"
      let found: Examination = try await Python.run("console_axe", [rig.adminURL, proxy, token])
      #expect(found.looked.count == 26 && found.violations.isEmpty, "\(found)")
    }
    withExtendedLifetime(directory) {}
  }
}
