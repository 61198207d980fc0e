import Foundation
import TestSupport
import Testing

/// The guard of the operator's listener against web pages that happen to be open beside it.
struct AdminListenerTests {
  private static let id = String(repeating: "A", count: 43)

  /// A request to each page, and a change, with these fields besides a JSON content type.
  private func statuses(_ rig: Rig, _ fields: [(String, String)], token: String? = nil) async throws -> [Int]
  {
    let given = fields + (token.map { [("Authorization", "Bearer \($0)")] } ?? [])
    var statuses: [Int] = []
    for page in ["/livez", "/readyz", "/metrics", "/v1/config", "/v1/records"] {
      statuses.append(try await rig.semel.admin.send("GET", page, given).status)
    }
    let change = given + [("Content-Type", "application/json")]
    statuses.append(try await rig.semel.admin.send("DELETE", "/v1/records/\(Self.id)", change).status)
    let path = "/v1/records/\(Self.id)/resolve"
    statuses.append(
      try await rig.semel.admin.send("POST", path, change, body: #"{"outcome":"not_applied"}"#).status)
    return statuses
  }

  private static let done = [200, 200, 200, 200, 200, 404, 404]
  private static let refused = Array(repeating: 403, count: 7)

  /// Runs a test on a listener with further names, and with a token where there is one.
  private func run(_ token: String?, _ body: @escaping @Sendable (Rig) async throws -> Void) async throws {
    let secrets = TemporaryDirectory()
    var admin = ["hosts": "[semel.internal, 10.1.2.3]"]
    if let token {
      try token.write(toFile: secrets.file("token"), atomically: true, encoding: .utf8)
      admin["token_file"] = secrets.file("token")
    }
    try await Rig.run(Configuration(admin: admin), body)
    withExtendedLifetime(secrets) {}
  }

  @Test(arguments: [nil, "operator"])
  func `a foreign host is refused, with and without a token`(token: String?) async throws {
    try await run(token) { rig in
      let port = rig.semel.ports.admin
      for host in [
        "127.0.0.1:\(port)", "localhost:\(port)", "LOCALHOST", "localhost.:9", "[::1]:\(port)", "127.9.9.9",
        "10.1.2.3:8081", "semel.internal", "Semel.Internal:80",
      ] {
        let found = try await statuses(rig, [("Host", host)], token: token)
        #expect(found == Self.done, "\(host)")
      }
      for host in [
        "attacker.example", "attacker.example:\(port)", "127.0.0.1.attacker.example",
        "localhost.attacker.example", "semel.internal.attacker.example", "", "127.0.0.1:x", "[::1", "127.1",
        "10.1.2.4:\(port)", "[::2]:\(port)", "0.0.0.0:\(port)",
      ] {
        let found = try await statuses(rig, [("Host", host)], token: token)
        #expect(found == Self.refused, "\(host)")
      }
    }
  }

  @Test(arguments: [nil, "operator"])
  func `a foreign page is refused, with and without a token`(token: String?) async throws {
    try await run(token) { rig in
      let port = rig.semel.ports.admin
      let host = ("Host", "localhost:\(port)")
      for fields in [
        [("Origin", "http://localhost:\(port)")], [("Origin", "http://LOCALHOST:\(port)")],
        [("Sec-Fetch-Site", "same-origin")], [("Sec-Fetch-Site", "none")],
      ] {
        let found = try await statuses(rig, [host] + fields, token: token)
        #expect(found == Self.done, "\(fields)")
      }
      for fields in [
        [("Origin", "https://attacker.example")], [("Origin", "null")], [("Origin", "http://localhost:3000")],
        [("Origin", "https://localhost:\(port)")], [("Origin", "http://localhost")],
        [("Origin", "http://localhost:\(port)"), ("Origin", "https://attacker.example")],
        [("Sec-Fetch-Site", "cross-site")], [("Sec-Fetch-Site", "same-site")],
      ] {
        let found = try await statuses(rig, [host] + fields, token: token)
        #expect(found == Self.refused, "\(fields)")
      }
    }
  }

  @Test func `pages that are probed by HEAD are there`() async throws {
    try await Rig.run { rig in
      for path in ["/livez", "/readyz", "/metrics"] {
        let client = try await RawClient(port: rig.semel.ports.admin)
        try await client.send("HEAD \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        let text = String(decoding: try await client.closedByPeer(), as: UTF8.self)
        #expect(text.hasPrefix("HTTP/1.1 200") && text.hasSuffix("\r\n\r\n"), "\(text)")
      }
    }
  }

  @Test func `a change is taken in JSON alone`() async throws {
    try await Rig.run { rig in
      let body = #"{"outcome":"not_applied"}"#
      for (type, status) in [
        (nil, 415), ("text/plain", 415), ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("application/json", 404), ("Application/JSON; charset=utf-8", 404), ("application/jsonp", 415),
      ] {
        let fields = type.map { [("Content-Type", $0)] } ?? []
        let path = "/v1/records/\(Self.id)"
        let resolved = try await rig.semel.admin.send("POST", path + "/resolve", fields, body: body)
        #expect(resolved.status == status, "\(type ?? "none")")
        #expect(resolved["Content-Type"] == "application/problem+json")
        // A page sends no DELETE without a preflight request, so that one without a type needs none.
        let forgotten = try await rig.semel.admin.send("DELETE", path, fields)
        #expect(forgotten.status == (type == nil ? 404 : status), "\(type ?? "none")")
        #expect(try await rig.semel.admin.send("DELETE", path, fields, body: body).status == status)
      }
    }
  }

  @Test func `a second host is refused`() async throws {
    try await Rig.run { rig in
      let host = "Host: localhost:\(rig.semel.ports.admin)\r\n"
      for (target, fields, status) in [
        ("/metrics", host, 200), ("/metrics", host + "Host: attacker.example\r\n", 403),
        ("/metrics", host + host, 403),
      ] {
        let client = try await RawClient(port: rig.semel.ports.admin)
        try await client.send("GET \(target) HTTP/1.1\r\n\(fields)\r\n")
        #expect(try await client.response(to: "GET").status == status, "\(target) \(fields)")
      }
    }
  }

  @Test func `a target in absolute form is held to the host's rule`() async throws {
    try await Rig.run { rig in
      let own = "localhost:\(rig.semel.ports.admin)"
      for (target, status) in [
        ("http://\(own)/livez", 200), ("http://127.0.0.1/livez", 200), ("HTTP://\(own)/livez", 200),
        ("http://attacker.example/livez", 403), ("http://localhost@attacker.example/livez", 403),
        ("https://\(own)/livez", 403),
      ] {
        let client = try await RawClient(port: rig.semel.ports.admin)
        try await client.send("GET \(target) HTTP/1.1\r\nHost: \(own)\r\n\r\n")
        #expect(try await client.response(to: "GET").status == status, "\(target)")
      }
    }
  }

  @Test func `a probe of HTTP 1_0 needs no host`() async throws {
    try await Rig.run { rig in
      let client = try await RawClient(port: rig.semel.ports.admin)
      try await client.send("GET /readyz HTTP/1.0\r\n\r\n")
      #expect(try await client.response(to: "GET").status == 200)
    }
  }
}
