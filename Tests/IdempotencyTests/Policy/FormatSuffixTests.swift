import Testing
import Wire

@testable import Idempotency

/// A format suffix is a spelling of its path, which takes no request from a route that protects it or names it.
struct FormatSuffixTests {
  @Test(
    arguments: [
      ("/a.json", "/a"), ("/v1/orders.XML", "/v1/orders"), ("/a.js/", "/a"), ("/a.html;x=1//;y", "/a"),
      ("/a.b.csv", "/a.b"), ("/a.json.js", "/a.json"), ("/a", nil), ("/.json", nil), ("/a/.json", nil),
      ("/a.json/b", nil), ("/a.jso", nil), ("/a.jsonp", nil), ("/a;b.json", nil), ("", nil), ("/", nil),
      ("*", nil),
    ] as [(String, String?)])
  func `the suffix of the last segment is found`(path: String, plain: String?) {
    let found = Array(path.utf8).withUnsafeBytes {
      FormatSuffix.removed(from: $0).map { String(decoding: $0, as: UTF8.self) }
    }
    #expect(found == plain)
  }

  /// A route in one line: `PATH on|off|shadow [SPELLING]`.
  private static func table(_ lines: [String]) throws -> RouteTable {
    RouteTable(
      try lines.map { line in
        let words = line.split(separator: " ").map(String.init)
        var policy = RoutePolicy(
          name: words[0], match: RouteMatch(path: try PathPattern(parsing: words[0])),
          upstream: UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1)))
        policy.idempotency = words[1] == "off" ? .off : .required
        policy.shadow = words[1] == "shadow"
        if words.count > 2 { policy.spelling = try #require(RoutePolicy.Spelling(rawValue: words[2])) }
        return policy
      })
  }

  @Test(
    arguments: [
      (["/a on"], "/a.json", "/a"), (["/a on"], "/a.pdf", nil), (["/a on exact"], "/a.json", nil),
      (["/a off"], "/a.json", nil), (["/a shadow"], "/a.json", "/a"),
      // A path that a route protects by its own pattern stays with it.
      (["/a on", "/a.json on"], "/a.json", "/a.json"), (["/a on", "/{id} on"], "/a.json", "/{id}"),
      // A route that protects nothing keeps a path that it names, and no other.
      (["/a on", "/a.json off"], "/a.json", "/a.json"), (["/a on", "/** off"], "/a.json", "/a"),
      (["/a on", "/{id} off"], "/a.json", "/a"), (["/** off", "/a on"], "/a.json", "/**"),
      (["/a on", "/** shadow"], "/a.json", "/a"), (["/a shadow", "/** off"], "/a.json", "/a"),
      (["/a/** on"], "/a.json", "/a/**"), (["/A on caseless"], "/a.JSON", "/A"),
    ] as [([String], String, String?)])
  func `a path is protected as it is without its suffix`(lines: [String], path: String, name: String?) throws
  {
    let head = try MessageHead(method: "POST", target: "/")
    let route = Array("POST".utf8).withUnsafeBytes { method in
      Array(path.utf8).withUnsafeBytes { path in
        [UInt8]().withUnsafeBytes { host in
          try? Self.table(lines).route(for: head, method: method, host: host, path: path)
        }
      }
    }
    #expect(route?.policy.name == name)
  }

  @Test(arguments: [
    (["/a on"], ["/a.json off", "/a on"]), (["/a on"], ["/a on exact"]),
    (["/a on", "/** off"], ["/a.json off", "/a on", "/** off"]),
  ])
  func `a change of what a suffix meets is a change of identity`(old: [String], new: [String]) throws {
    func identities(_ lines: [String]) throws -> [RouteIdentity] {
      try Self.table(lines).routes.map { route in
        var policy = route.policy
        policy.caller = CallerPolicy(parts: [.address])
        return RouteIdentity(policy)
      }
    }
    #expect(try !IdentityChange.all(from: identities(old), to: identities(new)).isEmpty)
    #expect(try IdentityChange.all(from: identities(old), to: identities(old)).isEmpty)
  }
}
