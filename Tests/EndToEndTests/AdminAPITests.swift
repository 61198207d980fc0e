import Foundation
import TestSupport
import Testing

/// The admin API, against its description.
struct AdminAPITests {
  struct Report: Decodable { let checked: Int }

  @Test func `each response is one that the description has`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: false)
      let record = try #require(rig.backend.requests.first?["Idempotency-Request-Id"])
      let report: Report = try await Python.run("admin_api", [rig.adminURL, record])
      #expect(report.checked > 20)
    }
  }

  struct Drive: Decodable {
    let code: Int
    let output: String
  }

  @Test func `schemathesis finds no response that the description lacks`() async throws {
    try await Rig.run(within: .seconds(120)) { rig in
      expectExecuted(try await rig.order("k"))
      let drive: Drive = try await Python.run("admin_schemathesis", [rig.adminURL])
      #expect(drive.code == 0, "\(drive.output)")
    }
  }

  @Test func `a second token permits reading alone`() async throws {
    let secrets = TemporaryDirectory()
    for name in ["operator", "reader"] {
      try "\(name)-0123456789".write(toFile: secrets.file(name), atomically: true, encoding: .utf8)
    }
    let admin = ["token_file": secrets.file("operator"), "read_token_file": secrets.file("reader")]
    let id = String(repeating: "A", count: 43)
    try await Rig.run(Configuration(admin: admin)) { rig in
      for (name, statuses) in [
        ("operator", [200, 200, 404]), ("reader", [200, 200, 403]), ("other", [401, 401, 401]),
      ] {
        let fields = [("Authorization", "Bearer \(name)-0123456789")]
        #expect(try await rig.semel.admin.send("GET", "/v1/config", fields).status == statuses[0])
        let search = try await rig.semel.admin.send(
          "POST", "/v1/records/search", fields + [("Content-Type", "application/json")], body: #"{"key":"k"}"#
        )
        #expect(search.status == statuses[1], "\(search.text)")
        #expect(try await rig.semel.admin.send("DELETE", "/v1/records/\(id)", fields).status == statuses[2])
      }
    }
    withExtendedLifetime(secrets) {}
  }
}
