import Foundation
import TestSupport
import Testing

/// What the console does to records, by HTTP alone, and what a stranger's text looks like there.
struct ConsoleActTests {
  private static func form(_ rig: Rig, _ path: String, _ text: String) async throws -> ReceivedResponse {
    try await rig.semel.admin.send(
      "POST", path,
      [("Sec-Fetch-Site", "same-origin"), ("Content-Type", "application/x-www-form-urlencoded")],
      body: text)
  }

  /// The value of a hidden field of a page.
  private static func field(_ name: String, in page: String) throws -> String {
    let start = try #require(page.range(of: "name=\"\(name)\" value=\""))
    return String(page[start.upperBound...].prefix { $0 != "\"" })
  }

  private struct Audit: Decodable {
    struct Entry: Decodable {
      let action: String
      let reason: String?
    }
    let entries: [Entry]
  }

  private static func audit(_ rig: Rig) async throws -> [String] {
    let response = try await rig.semel.admin.send("GET", "/v1/audit")
    return try JSONDecoder().decode(Audit.self, from: Data(response.body)).entries.map {
      "\($0.action) \($0.reason ?? "")"
    }
  }

  @Test func `many are counted first, and resolved once their number is typed`() async throws {
    try await Rig.run(Configuration(admin: ["ui": "{operate: true}"])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      for key in ["a", "b", "c"] {
        expectRefused(try await rig.order(key), 502, "outcome_unknown", retryable: false)
      }
      #expect(try await rig.semel.admin.send("GET", "/ui/").text.contains("3 unknown outcomes"))
      let counted = try await Self.form(rig, "/ui/records/bulk", "route=orders&older=0")
      #expect(counted.status == 200 && counted.text.contains("Type their number, 3"), "\(counted.text)")
      let plan = try Self.field("plan", in: counted.text)
      for (text, status) in [
        ("plan=\(plan)&number=2&reason=r", 400), ("plan=\(plan)&number=3&reason=", 400),
        ("plan=x&number=3&reason=r", 409),
      ] {
        #expect(try await Self.form(rig, "/ui/records/bulk/confirm", text).status == status)
      }
      #expect(try await Self.audit(rig).isEmpty)
      // One of them has changed since, and is left.
      let other = try #require(rig.backend.requests.first?["Idempotency-Request-Id"])
      try await rig.key(["resolve", "--id", other, "--applied", "--status", "201"])
      let confirm = "plan=\(plan)&number=3&reason=the+backend+was+down"
      let done = try await Self.form(rig, "/ui/records/bulk/confirm", confirm)
      #expect(done.text.contains("2 records were resolved as not applied. 1 were left"), "\(done.text)")
      #expect(try await Self.form(rig, "/ui/records/bulk/confirm", confirm).status == 409)
      #expect(try await Self.audit(rig).count { $0 == "resolve the backend was down" } == 3)
      rig.backend.on("/v1/orders") { _ in Reply(201) }
      expectExecuted(try await rig.order("b"))
      expectReplayed(try await rig.order("a"), 201)
    }
  }

  @Test func `a decision is stated beforehand, kept, undone until it is used, and explained`() async throws {
    try await Rig.run(Configuration(admin: ["ui": "{operate: true}"])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: false)
      let id = try #require(rig.backend.requests.first?["Idempotency-Request-Id"])
      let path = "/ui/records/\(id)"
      let before = try await rig.semel.admin.send("GET", path).text
      #expect(before.contains("It gets 409 outcome_unknown") && before.contains("runs as attempt 2"))
      #expect(
        try await Self.form(rig, path + "/resolve", "outcome=not_applied&attempt=1&reason=").status == 400)
      let decided = try await Self.form(
        rig, path + "/resolve", "outcome=not_applied&attempt=1&reason=not+in+the+ledger")
      #expect(decided["Location"] == path + "?done=not_applied")
      let after = try await rig.semel.admin.send("GET", path + "?done=not_applied").text
      #expect(after.contains("<h2>Undo</h2>") && after.contains("not in the ledger"))
      let undone = try await Self.form(
        rig, path + "/resolve",
        "outcome=applied&attempt=1&amend=true&status=201&headers=Content-Type:+text/plain&body=made+by+hand&reason=it+was"
      )
      #expect(undone.status == 303, "\(undone.text)")
      let replay = try await rig.order("k")
      expectReplayed(replay, 201)
      #expect(replay.text == "made by hand" && replay["Content-Type"] == "text/plain")
      let used = try await rig.semel.admin.send("GET", path).text
      #expect(used.contains("cannot be undone here") && !used.contains("/resolve\""))
      #expect(try await Self.audit(rig) == ["resolve it was", "resolve not in the ledger"])
    }
  }

  @Test(arguments: [false, true])
  func `bodies are shown where that is configured, and to be seen in the audit log`(bodies: Bool) async throws
  {
    try await Rig.run(Configuration(admin: ["ui": "{operate: true, bodies: \(bodies)}"])) { rig in
      rig.backend.on("/v1/orders") { _ in
        Reply(201, [("Content-Type", "text/html")], body: "<img src=x onerror=alert(1)> & more")
      }
      expectExecuted(try await rig.order("k"))
      let id = try #require(rig.backend.requests.first?["Idempotency-Request-Id"])
      let page = try await rig.semel.admin.send("GET", "/ui/records/\(id)").text
      #expect(page.contains("/body\"") == bodies && !page.contains("onerror"))
      let shown = try await Self.form(rig, "/ui/records/\(id)/body", "")
      #expect(shown.status == (bodies ? 200 : 403))
      #expect(shown.text.contains("&lt;img src=x onerror=alert(1)&gt; &amp; more") == bodies)
      #expect(!shown.text.contains("<img src=x"))
      #expect(try await Self.audit(rig) == (bodies ? ["view_body "] : []))
    }
  }

  @Test func `markup in every field that strangers control is shown as text`() async throws {
    struct Report: Decodable { let pages: Int }
    try await Rig.run(Configuration(admin: ["ui": "{operate: true, bodies: true}"])) { rig in
      rig.backend.on("/v1/lost") { _ in .unanswered }
      rig.backend.on("/v1/orders") { _ in
        Reply(
          201,
          [
            ("Content-Type", "text/html"), ("X-<b>", "<b>"), ("Location", #""><img src=x onerror=alert(1)>"#),
          ],
          body: "<script>alert(1)</script>")
      }
      let proxy = "http://127.0.0.1:\(rig.semel.ports.proxy)"
      let report: Report = try await Python.run("console_markup", [rig.adminURL, proxy])
      #expect(report.pages > 12)
    }
  }
}
