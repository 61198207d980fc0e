import Foundation
import Settings
import TestSupport
import Testing

// Callers, and keys that a preflight has as well.
extension WarningTests {
  @Test func `a caller whose only part is issued anew between retries is warned of`() throws {
    func file(_ parts: String, defaults: String = "") -> String {
      upstream + defaults
        + "routes: [{name: r, match: {path: /r}, caller: {parts: [\(parts)]}}, {name: s, match: {path: /s}}]\n"
    }
    let other = "defaults: {caller: {parts: [address]}}\n"
    for part in [
      "\"header:Authorization\"", "\"header:Cookie\"", "\"cookie:JSESSIONID\"", "\"cookie:sid\"",
      "\"query:access_token\"",
    ] {
      let warnings = try warnings(file(part, defaults: other)).filter { $0.contains("caller") }
      #expect(warnings.count == 1)
      #expect(
        warnings.allSatisfy { $0.contains("routes[0].caller: its only part is") && $0.contains("jwt:sub") })
    }
    for parts in [
      "address", "\"query:api_key\"", "\"json:/token\"", "\"cookie:device\"",
      "\"header:Authorization\", \"header:X-Account\"",
    ] {
      #expect(try warnings(file(parts, defaults: other)).filter { $0.contains("caller") }.isEmpty)
    }
    let shared = "defaults: {caller: {parts: [\"header:Authorization\"]}}\n"
    let all = upstream + shared + "routes: [{name: r, match: {path: /r}}, {name: s, match: {path: /s}}]\n"
    #expect(try warnings(all).map { $0.contains("defaults.caller: its only part is") } == [true])
  }

  @Test(arguments: [
    ("parts: [\"query:account\"]", "has no part that is a credential (query:account)"),
    (
      "parts: [\"json:/a/id\", \"query:shop\"]",
      "has no part that is a credential (json:/a/id and query:shop)"
    ),
    ("parts: [\"jwt:sub\", \"cookie:sid\"], anonymous: allow", "counts a missing part as an empty one"),
  ])
  func `a caller that anybody may name, or that comes and goes, is warned of`(caller: String, text: String)
    throws
  {
    let keys = "jwt: {verify: none}\n"
    let found = try warnings(
      upstream + keys + "routes: [{name: r, match: {path: /r}, caller: {\(caller)}}]\n")
    #expect(found.count { $0.contains("routes[0].caller: \(text)") } == 1, "\(found)")
  }

  @Test(arguments: [
    ("\"jwt:exp\"", ["jwt:exp"]), ("\"jwt:sub\", \"jwt:jti\"", ["jwt:jti"]),
    ("\"header:X-Account\", \"jwt:nbf\", \"jwt:/iat\"", ["jwt:nbf", "jwt:/iat"]),
    ("\"jwt:sub\", \"jwt:aud\"", []), ("\"jwt:/a/exp\"", []), ("address, \"query:exp\"", []),
  ])
  func `a part that each token has anew is warned of beside any others`(parts: String, named: [String]) throws
  {
    let text = upstream + "jwt: {verify: none}\nroutes: [{name: r, caller: {parts: [\(parts)]}}]\n"
    let expected = named.map {
      "semel.yaml:3:28: routes[0].caller: has the part \($0), which is different in each token: where a client "
        + "refreshes its token between two deliveries, the retry is another caller's and runs again; name what stays, "
        + "such as the token's subject (jwt:sub)"
    }
    #expect(try warnings(text).filter { $0.contains("caller") } == expected)
    let unprotected = text.replacing("{name: r", with: "{idempotency: off, name: r")
    #expect(try warnings(unprotected).filter { $0.contains("caller") }.isEmpty)
  }

  @Test(arguments: [
    ("[\"query:k\"]", "query:k"), ("[payload]", "payload"), ("[\"header:X-Key\", payload]", "payload"),
    ("[[\"query:a\", \"query:b\"]]", #"["query:a","query:b"]"#), ("[\"header:X-Key\"]", nil),
    ("[[\"header:X-A\", \"query:k\"]]", nil), ("[\"json:/id\"]", nil), ("[\"form:id\"]", nil),
  ])
  func `keys that do not tell an OPTIONS from a preflight are warned of`(from: String, source: String?) throws
  {
    let members = "match: {methods: [OPTIONS, POST], path: /o}, key: {from: \(from)}"
    let warning = source.map {
      "semel.yaml:2:55: routes[0].match: lists OPTIONS, and the route takes keys from \($0): a request in the form of a "
        + "browser's preflight (with Origin and Access-Control-Request-Method, without a body) is never protected, and "
        + "runs at each delivery even with such a key; take keys from a header, or take OPTIONS out"
    }
    #expect(try warnings(route(members)) == [warning].compactMap(\.self))
    #expect(try warnings(route(members.replacing("OPTIONS, ", with: ""))).isEmpty)
    #expect(try warnings(route("idempotency: off, " + members)).isEmpty)
  }

  @Test func `a caller that is the key itself is warned of`() throws {
    let key = "key: {from: [\"header:X-Key\", \"query:key\"]}"
    let warning = "routes[0].caller: its only part is header:x-key, which carries the key"
    func file(_ parts: String) -> String {
      upstream + "routes: [{name: r, caller: {parts: [\(parts)]}, \(key)}]\n"
    }
    #expect(try warnings(file("\"header:X-Key\"")).map { $0.contains(warning) } == [true])
    #expect(try warnings(file("\"header:X-Key\", \"header:X-Account\"")).isEmpty)
  }

  @Test func `a caller by certificate without a listener that asks for one is warned of`() async throws {
    for part in ["client_certificate", "\"client_certificate:san\", \"header:X-Account\""] {
      let text = upstream + "routes: [{name: r, caller: {parts: [\(part)]}}]\n"
      #expect(
        try warnings(text) == [
          "semel.yaml:2:28: routes[0].caller: names the client's certificate, but no listener has a client_ca that "
            + "asks for one: every request is refused, or anonymous"
        ])
      #expect(try warnings(text.replacing("{name: r", with: "{idempotency: off, name: r")).isEmpty)
    }
    let certificates = try await Certificates()
    let server = try await certificates.server()
    let listen = """
      listen:
        - address: "127.0.0.1:0"
          tls: {certificate: "\(server.certificate)", key: "\(server.key)", client_ca: "\(certificates.authority)"}

      """
    #expect(
      try warnings(listen + upstream + "routes: [{name: r, caller: {parts: [client_certificate]}}]\n").isEmpty
    )
  }

  @Test func `authorities whose callers would be one are refused`() async throws {
    let certificates = try await Certificates()
    let server = try await certificates.server()
    let other = try await Certificates()
    func found(_ names: [String?], caller: String = "client_certificate", sharing: Bool = false) -> [String] {
      let listeners = names.enumerated().map { index, name in
        let authority = index == 0 || sharing ? certificates.authority : other.authority
        let named = name.map { ", client_ca_name: \($0)" } ?? ""
        return "{address: \"127.0.0.1:\(index + 1)\", tls: {certificate: \"\(server.certificate)\", "
          + "key: \"\(server.key)\", client_ca: \"\(authority)\"\(named)}}"
      }
      return issues(
        upstream + "routes: [{name: r, caller: {parts: [\"\(caller)\"]}}]\n"
          + "listen: [\(listeners.joined(separator: ", "))]\n")
    }
    let refused = found([nil, nil])
    #expect(refused.count == 1)
    #expect(refused.first?.contains("listen[1].tls: has another client_ca than listen[0].tls") == true)
    #expect(found([nil, "partners"]).isEmpty)
    #expect(found(["own", "partners"]).isEmpty)
    #expect(found(["all", "all"]).isEmpty)
    #expect(found([nil, nil], sharing: true).isEmpty)
    #expect(found([nil, nil], caller: "header:x").isEmpty)
    #expect(found([nil, "'a b'"]).count == 1)
    withExtendedLifetime(other) {}
  }
}
