import Foundation
import TestSupport
import Testing

/// The pages of the admin listener, by HTTP alone: their access, their forms, and what they state and do.
struct ConsoleTests {
  private static let pages = ["/", "/records", "/routes", "/live", "/audit", "/configuration"]
  private static let operating = Configuration(admin: ["ui": "{operate: true}"])

  /// Sends a form as a page of the console does.
  private static func form(
    _ rig: Rig, _ path: String, _ text: String,
    _ fields: [(String, String)] = [("Sec-Fetch-Site", "same-origin")]
  ) async throws -> ReceivedResponse {
    try await rig.semel.admin.send(
      "POST", path, fields + [("Content-Type", "application/x-www-form-urlencoded")], body: text)
  }

  private static func page(_ rig: Rig, _ path: String) async throws -> String {
    let response = try await rig.semel.admin.send("GET", "/ui" + path)
    #expect(response.status == 200, "\(path): \(response.text)")
    return response.text
  }

  /// Makes records whose outcomes are unknown, and returns their ids.
  private static func lose(_ keys: [String], _ rig: Rig) async throws -> [String] {
    rig.backend.on("/v1/orders") { _ in .unanswered }
    for key in keys { expectRefused(try await rig.order(key), 502, "outcome_unknown", retryable: false) }
    return rig.backend.requests.compactMap { $0["Idempotency-Request-Id"] }
  }

  @Test func `each page is there without a script, and loads nothing from elsewhere`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k"))
      for path in Self.pages {
        let response = try await rig.semel.admin.send("GET", "/ui" + path)
        #expect(response.status == 200 && response.text.contains("<h1>"), "\(path)")
        #expect(response["Content-Type"] == "text/html; charset=utf-8")
        #expect(response["Content-Security-Policy"]?.hasPrefix("default-src 'self';") == true)
        #expect(response["Content-Security-Policy"]?.contains("unsafe") == false)
        #expect(response["X-Content-Type-Options"] == "nosniff" && response["Cache-Control"] == "no-store")
        #expect(!response.text.contains("style=") && !response.text.contains("http://www.google"))
      }
      for asset in ["style.css", "console.js", "icon.svg"] {
        #expect(try await rig.semel.admin.send("GET", "/ui/\(asset)").status == 200)
      }
      let script = try await rig.semel.admin.send("GET", "/ui/console.js")
      #expect(script.body.count < 10_000)
      #expect(try await rig.semel.admin.send("GET", "/ui/nothing").status == 404)
      #expect(try await rig.semel.admin.send("GET", "/")["Location"] == "/ui/")
    }
  }

  @Test func `a form is taken from a page of the console alone`() async throws {
    try await Rig.run(Self.operating) { rig in
      let id = try #require(try await Self.lose(["k"], rig).first)
      let port = rig.semel.ports.admin
      let path = "/ui/records/\(id)/forget"
      for fields in [
        [], [("Sec-Fetch-Site", "cross-site")], [("Sec-Fetch-Site", "same-site")],
        [("Sec-Fetch-Site", "none")],
        [("Origin", "http://attacker.example")], [("Origin", "null")],
        [("Origin", "https://localhost:\(port)")],
        [("Sec-Fetch-Site", "cross-site"), ("Origin", "http://localhost:\(port)")],
      ] {
        let response = try await Self.form(rig, path, "reason=x", fields + [("Host", "localhost:\(port)")])
        #expect(response.status == 403, "\(fields)")
      }
      // A form of another kind is none of the console's.
      let upload = try await rig.semel.admin.send(
        "POST", path, [("Sec-Fetch-Site", "same-origin"), ("Content-Type", "text/plain")], body: "reason=x")
      #expect(upload.status == 415)
      #expect(try await Self.form(rig, path, "reason=").status == 400)
      let https = [("Sec-Fetch-Site", "same-origin"), ("Origin", "https://localhost"), ("Host", "localhost")]
      let done = try await Self.form(rig, path, "reason=x", https)
      #expect(done.status == 303 && done["Location"] == "/ui/records/\(id)?done=forgotten")
      let own = [("Origin", "http://localhost:\(port)"), ("Host", "localhost:\(port)")]
      #expect(try await Self.form(rig, path, "reason=x", own).status == 404)
    }
  }

  @Test func `a link in another page leads to the console, and a picture of another page does not`()
    async throws
  {
    try await Rig.run { rig in
      let site = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]
      for (destination, status) in [("document", 200), ("iframe", 403), ("image", 403)] {
        let fields = site + [("Sec-Fetch-Dest", destination)]
        let page = try await rig.semel.admin.send("GET", "/ui/", fields)
        let document = try await rig.semel.admin.send("GET", "/v1/config", fields)
        #expect(page.status == status && document.status == 403)
      }
    }
  }

  @Test func `without a token the console changes nothing, unless it is configured to`() async throws {
    try await Rig.run { rig in
      let id = try #require(try await Self.lose(["k"], rig).first)
      let page = try await Self.page(rig, "/records/\(id)")
      #expect(page.contains("read-only") && !page.contains("/resolve") && !page.contains("/forget"))
      #expect(try await Self.form(rig, "/ui/records/\(id)/forget", "reason=x").status == 403)
      #expect(try await Self.form(rig, "/ui/records/bulk", "route=orders&older=0").status == 403)
      #expect(try await Self.form(rig, "/ui/records/search", "text=k").status == 303)
    }
  }

  @Test func `with tokens the console needs one, and the cookie is the browser's alone`() async throws {
    let secrets = TemporaryDirectory()
    for name in ["operator", "reader"] {
      try "\(name)-0123456789".write(toFile: secrets.file(name), atomically: true, encoding: .utf8)
    }
    let admin = ["token_file": secrets.file("operator"), "read_token_file": secrets.file("reader")]
    try await Rig.run(Configuration(admin: admin)) { rig in
      let id = String(repeating: "A", count: 43)
      for path in Self.pages + ["/records/\(id)", "/live/events"] {
        let response = try await rig.semel.admin.send("GET", "/ui" + path)
        #expect(response.status == 401 && response.text.contains("name=\"token\""), "\(path)")
      }
      #expect(try await Self.form(rig, "/ui/records/\(id)/forget", "reason=x").status == 401)
      #expect(try await Self.form(rig, "/ui/login", "token=operator").status == 401)
      for (name, status) in [("operator", 404), ("reader", 403)] {
        let login = try await Self.form(
          rig, "/ui/login", "token=\(name)-0123456789&to=//attacker.example/ui/")
        #expect(login.status == 303 && login["Location"] == "/ui/")
        let cookie = try #require(login["Set-Cookie"])
        #expect(
          cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Path=/ui"))
        let session = [("Cookie", String(cookie.prefix { $0 != ";" })), ("Sec-Fetch-Site", "same-origin")]
        #expect(try await rig.semel.admin.send("GET", "/ui/", session).status == 200)
        // The cookie opens pages alone.
        #expect(try await rig.semel.admin.send("GET", "/v1/config", session).status == 401)
        #expect(try await Self.form(rig, "/ui/records/\(id)/forget", "reason=x", session).status == status)
        #expect(try await Self.form(rig, "/ui/logout", "", session).status == 303)
        #expect(try await rig.semel.admin.send("GET", "/ui/", session).status == 401)
      }
      let bearer = [("Authorization", "Bearer reader-0123456789")]
      #expect(try await rig.semel.admin.send("GET", "/ui/", bearer).status == 200)
    }
    withExtendedLifetime(secrets) {}
  }

  @Test func `it may be left out, or be served under another path`() async throws {
    try await Rig.run(Configuration(admin: ["ui": "off"])) { rig in
      for path in ["/ui/", "/ui/style.css", "/"] {
        let response = try await rig.semel.admin.send("GET", path)
        #expect(response.status == 404)
      }
    }
    try await Rig.run(Configuration(admin: ["ui": "{base_path: /ops/semel}"])) { rig in
      for path in ["/ui/", "/ops/semel/ui/"] {
        let page = try await rig.semel.admin.send("GET", path)
        #expect(page.status == 200 && page.text.contains("href=\"/ops/semel/ui/records\""))
        #expect(!page.text.contains("\"/ui/"))
      }
    }
  }
}
