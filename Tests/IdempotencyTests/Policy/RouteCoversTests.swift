import Idempotency
import Testing
import Wire

/// Routes that are never met behind another one.
struct RouteCoversTests {
  /// A route as `METHODS host/path header` writes it; `-` for nothing, `!` before a route that protects nothing.
  private func policy(_ text: String, _ spelling: RoutePolicy.Spelling = .lenient) throws -> RoutePolicy {
    let words = text.split(separator: " ").map(String.init)
    var match = RouteMatch()
    let methods = words[0].replacing("!", with: "")
    if methods != "-" { match.methods = methods.split(separator: ",").map(String.init) }
    if words[1] != "-" { match.host = words[1] }
    if words[2] != "-" { match.path = try PathPattern(parsing: words[2]) }
    match.headers = words.dropFirst(3).map { RequiredHeader(name: $0, value: "1") }
    var policy = RoutePolicy(
      name: "r", match: match, upstream: UpstreamSettings(name: "b", address: .unix(path: "/s")))
    if words[0].hasPrefix("!") { policy.idempotency = .off }
    policy.spelling = spelling
    return policy
  }

  @Test(arguments: [
    ("!- - -", "- - /a"), ("!- - /**", "POST h /a/{id} x"), ("- - /a", "POST - /a"),
    ("- - /a", "PURGE,POST - /a"),
    ("POST,PUT - /a", "PUT - /a"), ("- - -", "- - /**"), ("- - /a/{id}", "- - /a/b"), ("- - /a/**", "- - /a"),
    ("- - /a/**", "- - /a/b/**"), ("- - /a/**", "- - /a/{x}/c"), ("- - /a/{y}", "- - /a/{x}"),
    ("- *.example.com /a", "- a.example.com /a"), ("- *.example.com /a", "- *.b.example.com /a"),
    ("- - /a", "- h /a"), ("- - /a x", "- - /a x y"), ("- - /a/", "- - /a"), ("- - /a;x=1", "- - /a;x=2"),
    ("!- - /a", "- - /a"),
  ]) func `an earlier route takes all requests of a later one`(earlier: String, later: String) throws {
    let (earlier, later) = (try policy(earlier), try policy(later))
    #expect(earlier.covers(later))
  }

  @Test(arguments: [
    ("- - -", "!- - -"), ("- - /a", "GET - /a"), ("- - /a", "!- - /a"), ("POST - /a", "- - /a"),
    ("POST - /a", "PUT - /a"), ("- - /a/b", "- - /a/{id}"), ("- - /a/{id}", "- - /a/**"),
    ("- - /a/{id}", "- - /a"),
    ("- - /a/{x}/**", "- - /a/**"), ("- - /a", "- - /b"), ("- - /a", "- - -"), ("- h /a", "- - /a"),
    ("- h /a", "- i /a"), ("- *.example.com /a", "- example.com /a"),
    ("- a.example.com /a", "- *.example.com /a"),
    ("- *.b.example.com /a", "- *.example.com /a"), ("- - /a x", "- - /a"), ("- - /a x", "- - /a y"),
    ("GET,POST,PUT,PATCH,DELETE - /a", "- - /a"),
  ]) func `a later route is reachable if one request is left to it`(earlier: String, later: String) throws {
    let (earlier, later) = (try policy(earlier), try policy(later))
    #expect(!earlier.covers(later))
  }

  @Test func `a route's spelling decides which routes it covers`() throws {
    func covers(
      _ earlier: String, _ own: RoutePolicy.Spelling, _ later: String, _ other: RoutePolicy.Spelling
    )
      throws -> Bool
    { try policy("- - " + earlier, own).covers(policy("- - " + later, other)) }
    #expect(try covers("/a", .lenient, "/a/", .exact))
    #expect(try covers("/a", .caseless, "/A", .lenient))
    #expect(try covers("/**", .exact, "/a", .lenient))
    #expect(try covers("/7/{x}", .lenient, "/7/b", .caseless))
    #expect(try covers("/a//b", .exact, "/a//b", .exact))
    #expect(try !covers("/a", .exact, "/a", .lenient))
    #expect(try !covers("/a", .exact, "/a/", .exact))
    #expect(try !covers("/a/{id}", .exact, "/a/", .exact))
    #expect(try !covers("/a", .lenient, "/a", .caseless))
    #expect(try !covers("/a/**", .exact, "/a/b", .lenient))
  }
}
