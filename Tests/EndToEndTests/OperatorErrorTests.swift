import Foundation
import TestSupport
import Testing

/// Errors of an operator's command that its text must tell apart.
struct OperatorErrorTests {
  @Test(arguments: [
    ["key", "list"], ["key", "find", "--key", "a"],
    ["key", "show", "--id", String(repeating: "A", count: 43)],
    ["tail", "--no-follow"], ["shadow-report"],
  ])
  func `a listener without the paths of the admin listener is named as another one`(command: [String])
    async throws
  {
    let problem = #"{"type":"about:blank","title":"Not Found","detail":"no such page"}"#
    try await Rig.run { rig in
      for body in ["", "<html>", problem] {
        for path in [
          "/v1/records", "/v1/records/search", "/v1/records/\(String(repeating: "A", count: 43))",
          "/v1/requests",
          "/metrics",
        ] {
          rig.backend.on(path) { _ in Reply(404, body: body) }
        }
        let url = "http://127.0.0.1:\(rig.semel.ports.proxy)"
        let process = try await rig.command(command + ["--admin", url], ends: .code(1))
        let text = "semel: the response of \(url) is not from Semel's admin listener: "
        #expect(process.errors == text + "give that listener's URL with --admin\n", "\(body)")
      }
    }
  }

  @Test func `a route that is not configured is remarked beside the list`() async throws {
    try await Rig.run { rig in
      let mistyped = try await rig.key(["list", "--route", "ordres"])
      #expect(mistyped.errors == "semel: no route ordres is configured; there are: orders\n")
      let right = try await rig.key(["list", "--route", "orders"])
      #expect(right.errors.isEmpty && right.output == mistyped.output, "\(right.errors)\(right.output)")
    }
  }

  @Test func `a header that no replay could have is refused with its name`() async throws {
    try await Rig.run { rig in
      let id = String(repeating: "A", count: 43)
      let applied = ["resolve", "--id", id, "--applied", "--status", "201", "--header"]
      for name in [
        "Transfer-Encoding", "content-length", "Connection", "Keep-Alive", "Date", "Idempotency-Status",
      ] {
        let refused = try await rig.key(applied + ["\(name): 1"], ends: .code(1))
        #expect(
          refused.errors
            == "semel: the header \(name) cannot be stated, since it is made anew for each replay or each connection: "
            + "take it out\n")
      }
      let value = try await rig.key(applied + ["X-Order: a\u{1}b"], ends: .code(1))
      #expect(value.errors.contains("the value of the header X-Order is not one"), "\(value.errors)")
      let spaced = try await rig.key(applied + ["X Order: a"], ends: .code(1))
      #expect(spaced.errors.contains("a name that is not one of a header: X Order"), "\(spaced.errors)")
    }
  }

  @Test func `a wrong token is told from a missing one`() async throws {
    let secrets = TemporaryDirectory()
    try "operator\n".write(toFile: secrets.file("token"), atomically: true, encoding: .utf8)
    try await Rig.run(Configuration(admin: ["token_file": secrets.file("token")])) { rig in
      for (fields, text) in [
        (
          [("Authorization", "Bearer other")],
          "the token is another than the configured one (admin.token_file)\n"
        ),
        ([], "send the admin token as Authorization: Bearer TOKEN\n"),
        ([("Authorization", "Basic b3BlcmF0b3I=")], "send the admin token as Authorization: Bearer TOKEN\n"),
      ] as [([(String, String)], String)] {
        let refused = try await rig.semel.admin.send("GET", "/v1/config", fields)
        #expect(refused.status == 401 && refused.text == text, "\(refused.text)")
      }
    }
  }
}
