import Foundation
import TestSupport
import Testing

/// The operator's access to records and configuration: tokens, secrets, and requests that are refused.
struct OperatorAccessTests {
  @Test func `the active configuration is shown without its secrets`() async throws {
    let configuration = Configuration(
      store: .redis, top: ["tracing": "{otlp: 'http://semel:hunter3@127.0.0.1:\(FreePort.find())'}"],
      redisArguments: ["--requirepass", "hunter2"], redisUser: ":hunter2@")
    try await Rig.run(configuration) { rig in
      let config = try await rig.semel.admin.send("GET", "/v1/config")
      #expect(config.status == 200)
      let object = try JSONSerialization.jsonObject(with: Data(config.body)) as? [String: Any]
      #expect((object?["limits"] as? [String: Any])?["max_in_flight"] as? Int == 4096)
      #expect(config.text.contains(#""password":"(redacted)""#))
      #expect(config.text.contains(#""path":"/v1/**""#))
      #expect(!config.text.contains("hunter"))
    }
  }

  @Test func `a configured token is required, except by the probes`() async throws {
    let secrets = TemporaryDirectory()
    try "operator\n".write(toFile: secrets.file("token"), atomically: true, encoding: .utf8)
    try await Rig.run(Configuration(admin: ["token_file": secrets.file("token")])) { rig in
      #expect(await rig.semel.status(of: "/livez") == 200)
      for page in ["/metrics", "/v1/records", "/v1/config"] {
        #expect(await rig.semel.status(of: page) == 401, "\(page)")
      }
      let refused = try await rig.key(["list"], ends: .code(1))
      #expect(refused.errors.contains("wants its admin token"), "\(refused.errors)")
      let other = secrets.file("other")
      try "somebody\n".write(toFile: other, atomically: true, encoding: .utf8)
      let mistaken = try await rig.key(["list", "--token-file", other], ends: .code(1))
      #expect(mistaken.errors.contains("does not take the token in \(other)"), "\(mistaken.errors)")
      try await rig.key(["list", "--token-file", secrets.file("token")])
      let health = try ManagedProcess(
        [SemelProcess.binary, "health", "--admin", "http://127.0.0.1:\(rig.semel.ports.admin)"])
      #expect(try await health.exit() == .code(0))
      #expect(health.output.hasPrefix("ready"))
    }
  }

  @Test func `a changed token counts without a restart, and the last good one stays`() async throws {
    let secrets = TemporaryDirectory()
    let file = secrets.file("token")
    try "first\n".write(toFile: file, atomically: true, encoding: .utf8)
    try await Rig.run(Configuration(admin: ["token_file": file])) { rig in
      @Sendable func status(_ token: String) async throws -> Int {
        try await rig.semel.admin.send("GET", "/v1/config", [("Authorization", "Bearer \(token)")]).status
      }
      #expect(try await status("first") == 200)
      try "second\n".write(toFile: file, atomically: true, encoding: .utf8)
      try await rig.semel.process.line(containing: "the admin token was read again")
      #expect(try await status("second") == 200)
      #expect(try await status("first") == 401)
      try FileManager.default.removeItem(atPath: file)
      try await rig.semel.process.line(containing: "the admin token could not be read again")
      #expect(try await status("second") == 200)
      // A reload looks at once.
      try "third\n".write(toFile: file, atomically: true, encoding: .utf8)
      rig.semel.process.signal(SIGHUP)
      try await rig.semel.process.line(containing: "the configuration was reloaded")
      #expect(try await status("third") == 200)
      #expect(!rig.semel.process.output.contains("third"))
    }
  }

  @Test(arguments: [
    ["key", "list"], ["key", "find", "--key", "a"], ["tail", "--no-follow"], ["tail", "--route", "orders"],
    ["shadow-report"], ["health"],
  ])
  func `another listener than the admin listener is named as such`(command: [String]) async throws {
    try await Rig.run { rig in
      for body in ["text", #"{"id":"1"}"#] {
        for path in ["/v1/records", "/v1/requests", "/v1/config", "/metrics", "/readyz"] {
          rig.backend.on(path) { _ in Reply(200, body: body) }
        }
        let url = "http://127.0.0.1:\(rig.semel.ports.proxy)"
        let process = try await rig.command(command + ["--admin", url], ends: .code(1))
        #expect(process.errors.contains("\(url) is not from Semel's admin listener"), "\(process.errors)")
      }
    }
  }

  @Test(arguments: [
    ["tail", "--no-follow", "--route", "ordres"],
    ["key", "resolve", "--not-applied", "--older-than", "0s", "--yes", "--route", "ordres"],
    ["key", "find", "--key", "a", "--route", "ordres"],
    ["key", "show", "--key", "a", "--route", "ordres"],
    ["key", "resolve", "--not-applied", "--key", "a", "--route", "ordres"],
  ])
  func `a route that does not exist is an error with the names of those that do`(command: [String])
    async throws
  {
    try await Rig.run { rig in
      let process = try await rig.command(command + ["--admin", rig.adminURL], ends: .code(1))
      #expect(process.errors == "semel: there is no route ordres; there are: orders\n")
    }
  }

  @Test func `the environment names the admin listener and its token`() async throws {
    let secrets = TemporaryDirectory()
    try "operator\n".write(toFile: secrets.file("token"), atomically: true, encoding: .utf8)
    try await Rig.run(Configuration(admin: ["token_file": secrets.file("token")])) { rig in
      let url = "http://127.0.0.1:\(rig.semel.ports.admin)"
      let list = [SemelProcess.binary, "key", "list"]
      for (variables, options, exit) in [
        (["SEMEL_ADMIN=\(url)", "SEMEL_ADMIN_TOKEN_FILE=\(secrets.file("token"))"], [], 0),
        (["SEMEL_ADMIN=http://127.0.0.1:1", "SEMEL_ADMIN_TOKEN_FILE="], ["--admin", url], 1),
        (
          ["SEMEL_ADMIN=http://127.0.0.1:1", "SEMEL_ADMIN_TOKEN_FILE=/none"],
          ["--admin", url, "--token-file", secrets.file("token")], 0
        ),
      ] as [([String], [String], Int32)] {
        let process = try ManagedProcess(["env"] + variables + list + options)
        #expect(try await process.exit() == .code(exit), "\(variables) \(process.errors)")
      }
      for (variable, exit) in [(url, 0), ("http://127.0.0.1:1", 1)] as [(String, Int32)] {
        let health = try ManagedProcess(["env", "SEMEL_ADMIN=\(variable)", SemelProcess.binary, "health"])
        #expect(try await health.exit() == .code(exit), "\(variable) \(health.errors)")
      }
    }
  }

  @Test func `a parameter that does not exist is an error with the names of those that do`() async throws {
    try await Rig.run { rig in
      for (path, known) in [
        ("/v1/records?sate=unknown", "state, cursor"), ("/v1/requests?x", "last, from, wait"),
      ] {
        let refused = try await rig.semel.admin.send("GET", path)
        #expect(refused.status == 400 && refused.text.contains("; there are: \(known)\""), "\(refused.text)")
      }
    }
  }

  @Test(arguments: [
    ("GET", "/v1/records?state=done", "", 400), ("GET", "/v1/records/short", "", 400),
    ("GET", "/v1/records?cursor=nonsense", "", 400), ("GET", "/v1/records?x=1", "", 400),
    ("GET", "/v1/records?State=unknown", "", 400),
    ("GET", "/v1/records?state=unknown&state=in_flight", "", 400), ("GET", "/v1/requests?lst=1", "", 400),
    (
      "POST", "/v1/records/find",
      #"{"route":"orders","key":"k","method":"POST PUT","path":"/x","caller":{"header:authorization":"a"}}"#,
      400
    ),
    (
      "POST", "/v1/records/find",
      #"{"route":"orders","key":"k","method":"post","path":"/x","caller":{"header:authorization":"a"}}"#,
      400
    ),
    (
      "POST", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/resolve",
      #"{"outcome":"applied","status":204,"body":"text"}"#, 400
    ),
    (
      "POST", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/resolve",
      #"{"outcome":"applied","status":304,"body_base64":"AA=="}"#, 400
    ),
    (
      "POST", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/resolve",
      #"{"outcome":"applied","status":103}"#, 400
    ),
    (
      "POST", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/resolve",
      #"{"outcome":"applied","status":200,"route":"orders","headers":{"set-cookie":"a=b"}}"#, 400
    ),
    (
      "POST", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/resolve",
      #"{"outcome":"not_applied","atempt":2}"#, 400
    ),
    ("POST", "/v1/records/search", #"{"key":"k","caller":"c"}"#, 400),
    (
      "POST", "/v1/records/put",
      #"{"record":{"route":"orders","key":"k","paths":"/"},"payload":{},"resolution":{"outcome":"applied"}}"#,
      400
    ),
    ("POST", "/v1/records/find", "{}", 400), ("POST", "/v1/records/find", "no json", 400),
    ("POST", "/v1/records/find", #"{"route":"none","key":"k"}"#, 404),
    ("POST", "/v1/records/find", #"{"route":"orders","key":"k","method":"POST","path":"/v1/orders"}"#, 400),
    (
      "POST", "/v1/records/find",
      #"{"route":"orders","key":"a b","method":"POST","path":"/x","caller":{"header:authorization":"a"}}"#,
      400
    ),
    (
      "POST", "/v1/records/find",
      #"{"route":"orders","key":"k","method":"POST","path":"/x","caller":{"header:authorization":"a","address":"b"}}"#,
      400
    ),
    (
      "POST", "/v1/records/find",
      #"{"route":"orders","key":"a,b","method":"POST","path":"/x","caller":{"header:authorization":"a"}}"#,
      400
    ),
    (
      "POST", "/v1/records/find",
      #"{"route":"orders","key":"\"ab","method":"POST","path":"/x","caller":{"header:authorization":"a"}}"#,
      400
    ),
    ("DELETE", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "", 404),
    (
      "POST", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/resolve",
      #"{"outcome":"applied","status":99}"#, 400
    ),
    (
      "POST", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/resolve",
      #"{"outcome":"applied"}"#, 400
    ),
    (
      "POST", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/resolve",
      #"{"outcome":"applied","headers":{"a b":"c"}}"#, 400
    ),
    (
      "POST", "/v1/records/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/resolve",
      #"{"outcome":"not_applied"}"#, 404
    ),
  ])
  func `an impossible operation is refused with a reason`(
    method: String, path: String, body: String, status: Int
  ) async throws {
    try await Rig.run { rig in
      let response = try await rig.semel.admin.send(
        method, path, [("Content-Type", "application/json")], body: body)
      #expect(response.status == status, "\(response.text)")
      #expect(response["Content-Type"] == "application/problem+json")
      #expect(response.text.contains(#""detail":""#))
    }
  }
}
