import Glibc
import Idempotency
import Testing
import Wire

/// The requests that two lists of routes identify differently.
struct IdentityComparisonTests {
  private static let upstream = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))

  /// A route in one line: `METHODS PATH HOST CALLER [SPELLING]`, an asterisk for any of the first three, `off` or
  /// `shadow` for the caller.
  private static func route(_ text: String, at index: Int) throws -> RoutePolicy {
    let words = text.split(separator: " ").map(String.init)
    var match = RouteMatch()
    if words[0] != "*" { match.methods = words[0].split(separator: ",").map(String.init) }
    if words[1] != "*" { match.path = try PathPattern(parsing: words[1]) }
    if words[2] != "*" { match.host = words[2] }
    var policy = RoutePolicy(name: "r\(index)", match: match, upstream: upstream)
    policy.caller = CallerPolicy(parts: [.header(words[3])])
    if words[3] == "off" { policy.idempotency = .off }
    if words[3] == "shadow" { policy.shadow = true }
    if words.count > 4 { policy.spelling = try #require(RoutePolicy.Spelling(rawValue: words[4])) }
    return policy
  }

  private static func routes(_ lines: [String]) throws -> [RoutePolicy] {
    try lines.enumerated().map { try route($1, at: $0) }
  }

  @Test(arguments: [
    // Nothing but the order of routes that have nothing in common.
    (["POST /a * x", "POST /b * y"], ["POST /b * y", "POST /a * x"]),
    // Requests that an earlier route takes as a whole were never the later one's.
    (["POST /a * x", "POST /** * x", "POST /a/b * y"], ["POST /a * x", "POST /** * x"]),
    (["POST,PUT /a * x"], ["POST /a * x", "PUT /a * x"]),
    (["POST /a * x", "PUT /a * x"], ["PUT,POST,GET /a * x"]),
    (["POST /{v}/a * x"], ["POST /v1/a * x", "POST /{v}/a * x"]),
    (["POST /a h.example x"], ["POST /b h.example y", "POST /a i.example y", "POST /a h.example x"]),
    (["POST /a * x"], ["GET /a * off", "POST /a * x"]),
    (["POST /a * off"], ["POST /a * x"]), ([], ["* * * x"]),
    (["POST /a/** * x"], ["POST /a * x", "POST /a/** * x"]),
    (["GET /a/** * x"], ["* /a/b * shadow", "GET /a/** * x"]),
  ]) func `unchanged requests keep their identity`(old: [String], new: [String]) throws {
    let comparison = IdentityComparison(from: try Self.routes(old), to: try Self.routes(new))
    #expect(comparison.changes() == [])
  }

  @Test(arguments: [
    (["POST /a * x"], ["POST /{any} * y", "POST /a * x"], "0 0 caller"),
    (["POST /a/** * x"], ["POST /a/b/c * y", "POST /a/** * x"], "0 0 caller"),
    (["POST /a/{id} * x"], ["POST /{x}/b * y", "POST /a/{id} * x"], "0 0 caller"),
    (["* * * x"], ["* * h.example y", "* * * x"], "0 0 caller"),
    (["POST /a * x", "* * * y"], ["* * * y", "POST /a * x"], "0 0 caller"),
    (["POST /a * x"], ["* /a * off", "POST /a * x"], "0 0 off"), (["POST /a * x"], ["PUT /a * x"], "0 none"),
    (["POST /a * x"], [], "0 none"), (["POST /{id} * x"], ["POST /a * x"], "0 none"),
    (["POST /a/** * x"], ["POST /a/{id} * x"], "0 none"), (["POST /a/** * x"], ["POST /a * x"], "0 none"),
    (["POST /a * x", "POST /b * x"], ["POST /a * x", "POST /** * y"], "1 1 caller"),
    (["POST,PATCH /a * x"], ["POST /a * x", "* * * off"], "0 1 off"),
    // Only while it is shadowed it leaves the safe methods to others.
    (["* /a/b * shadow", "GET /a/** * x"], ["* /a/b * off", "GET /a/** * x"], "1 0 off"),
    // A lenient route matches the other spelling, too.
    (["POST /a:b * x"], ["POST /a%3Ab * off", "POST /a:b * x"], "0 0 off"),
    // An earlier route takes one segment in other spellings than before, and the later one demands that of the others.
    (["POST /a/b * off", "POST /a/{x} * x"], ["POST /a/b * off caseless", "POST /a/{x} * x"], "1 0 off"),
    (["POST /a/b * y", "POST /a/{x} * x"], ["POST /a/b * y caseless", "POST /a/{x} * x"], "1 0 caller"),
    (
      ["POST /a/b * off exact", "POST /{v}/b * x exact"], ["POST /a/b * off", "POST /{v}/b * x exact"],
      "1 0 off"
    ),
    (
      ["POST /a/b/c * y", "POST /{v}/b/{w} * x exact"],
      ["POST /a/b/c * y caseless", "POST /{v}/b/{w} * x exact"],
      "1 0 caller"
    ),
    (
      ["POST /a/b * off exact", "POST /a/** * x exact"], ["POST /a/b * off", "POST /a/** * x exact"],
      "1 0 off"
    ),
    // In another letter case: a segment in the place of a `**`, one in capitals, and one of which both cases are routes.
    (["POST /a/b * off", "POST /a/** * x"], ["POST /a/b * off caseless", "POST /a/** * x"], "1 0 off"),
    (["POST /API/{v} * off", "POST /** * x"], ["POST /API/{v} * off caseless", "POST /** * x"], "1 0 off"),
    (["POST /V/A * x caseless"], ["POST /V/A * x", "POST /v/a * x"], "0 none"),
    // With a second slash, since an exact placeholder matches no empty segment, and with more than another route has.
    (
      ["POST /a/{v}/** * off exact", "POST /a/** * x exact"],
      ["POST /a/{v}/** * off", "POST /a/** * x exact"], "1 0 off"
    ),
    (
      ["POST /{v}//{w}/** * off exact", "POST /a/{v}/** * y exact", "POST /{v}/** * x exact"],
      ["POST /{v}//{w}/** * off exact", "POST /a/{v}/** * y", "POST /{v}/** * x exact"], "2 1 caller"
    ),
    // With a slash at the end.
    (
      ["POST /a/{v} * off exact", "POST /a/{v}/** * x exact"],
      ["POST /a/{v} * off", "POST /a/{v}/** * x exact"], "1 0 off"
    ),
    // In the spelling that an exact route demands, with a literal of the other one.
    (
      ["POST /a%20b/{v} * x exact"], ["POST /{v}/c * y", "POST /a%20b/{v} * x exact"], "0 0 caller"
    ),
    (["POST /a//{v} * x exact"], ["POST /{v}/c * y", "POST /a//{v} * x exact"], "0 0 caller"),
    // In another letter case and with a second slash at once, since other routes take requests with one of both.
    (
      ["POST /b * x caseless", "POST /{v}/** * x exact"], ["POST /b * x", "POST /{v}/** * x exact"], "0 none"
    ),
  ]) func `requests whose identity changes are found`(old: [String], new: [String], expected: String) throws {
    let comparison = IdentityComparison(from: try Self.routes(old), to: try Self.routes(new))
    let found = comparison.changes().map { change in
      switch change.end {
      case .identified(let index, let members): "\(change.route) \(index) \(members.joined(separator: ","))"
      case .unprotected(let index): "\(change.route) \(index) off"
      case .unmatched: "\(change.route) none"
      }
    }
    #expect(found == [expected])
  }

  @Test func `routes that match one another's requests overlap`() throws {
    let old = try Self.routes(["POST /a/** * x", "PUT * * off"])
    for (line, overlaps) in [("* /a/b * y", true), ("PUT * * x", false), ("POST /b * x", false)] {
      let comparison = IdentityComparison(from: old, to: try Self.routes([line]))
      #expect(comparison.overlaps() == overlaps, "\(line)")
    }
  }

  @Test func `a long list is compared quickly`() throws {
    let lines = (0..<60).map { "POST /v1/r\($0)/{id} * x" } + ["* /** * y"]
    let old = try Self.routes(lines)
    let new = try Self.routes(["POST /v2/** * z"] + lines)
    let begun = Self.processorTime
    #expect(IdentityComparison(from: old, to: new).changes().count == 1)
    let span = Self.processorTime - begun
    #expect(span < .seconds(5), "\(span)")
  }

  /// The time that the calling thread has had a processor for.
  private static var processorTime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}
