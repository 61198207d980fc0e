import Glibc
import Idempotency
import Testing
import Wire

/// The routes whose requests another list of routes may identify differently.
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

  private static func routes(_ lines: [String]) throws -> [RouteIdentity] {
    try lines.enumerated().map { RouteIdentity(try route($1, at: $0)) }
  }

  /// The changes in one line each: the old route, the new one that is the cause, and what differs.
  private static func changes(_ old: [String], _ new: [String]) throws -> [String] {
    IdentityChange.all(from: try routes(old), to: try routes(new)).map { change in
      switch change.cause {
      case .identified(let index, let members):
        "\(change.route.name) \(index) \(members.joined(separator: ","))"
      case .unprotected(let index): "\(change.route.name) \(index) off"
      case .unmatched: "\(change.route.name) none"
      }
    }
  }

  @Test(arguments: [
    (["POST /a * x"], ["POST /a * x"]), ([], ["* * * x"]),
    // Any routes at the end, and any change of those at the end that protect nothing.
    (["POST /a * x"], ["POST /a * x", "PUT /a * y", "* /** * off", "* * h.example x", "* /b/** * z"]),
    (["POST /a * x", "* /b * off"], ["POST /a * x", "* /c * y", "* /b * shadow"]),
    // Routes that protect nothing are protected, or taken out.
    (["POST /a * off"], ["POST /a * x"]), (["* /a * off", "POST /** * x"], ["* /a * y", "POST /** * x"]),
    (["* /a * shadow", "POST /** * x"], ["* /a * y", "POST /** * x"]),
    (["* /a * off", "POST /** * x"], ["* /a * shadow", "POST /** * x"]),
    (["* /a * off", "POST /** * x"], ["POST /** * x"]),
    // Routes with the same identity, in any order.
    (["POST /a/** * x"], ["POST /a * x", "POST /a/** * x"]),
    (["POST /a * x", "POST /** * x"], ["POST /** * x", "POST /a * x"]),
    // Routes whose paths exclude each other, in any order.
    (["POST /a * x", "POST /b * y"], ["POST /b * y", "POST /a * x"]),
    (["POST /{v}/a * x"], ["POST /{v}/b/** * y", "* /{v}/A-1 * off", "POST /{v}/a * x"]),
    (["POST /a * x"], ["POST /a * x", "POST /b.json * y", "* /a.pdf * y", "* /a/b.json * y"]),
    // Later routes that take no path with a format suffix of an earlier one, or took them before.
    (["POST /a * x"], ["POST /a * x", "POST /a/{id} * y", "POST /a/** * y", "* /** * shadow"]),
    (["POST /a * x exact"], ["POST /a * x exact", "* /** * y"]),
    (["POST /a * x"], ["POST /a * x", "* /** * x exact"]),
    (["POST /{v} * x"], ["POST /{v} * x", "* /** * y"]),
    (["POST /a * x", "* /** * y"], ["* /b * y", "POST /a * x", "* /** * y"]),
    (["* /b/** * off", "POST /a * x", "* /** * y"], ["POST /a * x", "* /** * y"]),
    // The order of what a route lists.
    (["POST,PUT /a * x"], ["PUT,POST /a * x"]),
  ]) func `unchanged requests keep their identity`(old: [String], new: [String]) throws {
    #expect(try Self.changes(old, new) == [])
  }

  @Test(arguments: [
    (["POST /a * x"], ["POST /{any} * y", "POST /a * x"], "r0 0 caller"),
    (["POST /a/** * x"], ["POST /a/b/c * y", "POST /a/** * x"], "r0 0 caller"),
    (["POST /a/{id} * x"], ["POST /{x}/b * y", "POST /a/{id} * x"], "r0 0 caller"),
    (["* * * x"], ["* * h.example y", "* * * x"], "r0 0 caller"),
    (["POST /a * x", "* * * y"], ["* * * y", "POST /a * x"], "r0 0 caller"),
    (["POST /a * x"], ["* /a * off", "POST /a * x"], "r0 0 off"),
    (["POST /a * x"], ["POST /a * shadow"], "r0 0 off"), (["POST /a * x"], ["POST /a * y"], "r0 0 caller"),
    (["POST /a * x"], ["PUT /a * x"], "r0 none"), (["POST /a * x"], [], "r0 none"),
    (["POST /a/** * x"], ["POST /a/{id} * x"], "r0 none"),
    (["POST /a/** * x"], ["POST /a * x"], "r0 none"),
    (["POST /a * x", "POST /b * x"], ["POST /a * x", "POST /** * x"], "r1 none"),
    (["POST /a * x"], ["POST /a i.example x"], "r0 none"),
    (["POST /a * x caseless"], ["POST /a * x"], "r0 none"),
    // Only while it is shadowed it leaves the safe methods to others.
    (["* /a/b * shadow", "GET /a/** * x"], ["* /a/b * off", "GET /a/** * x"], "r1 0 off"),
    // An earlier route takes more spellings than before.
    (["POST /a/b * off", "POST /a/{x} * x"], ["POST /a/b * off caseless", "POST /a/{x} * x"], "r1 0 off"),
    (
      ["POST /a/b * off exact", "POST /a/** * x exact"], ["POST /a/b * off", "POST /a/** * x exact"],
      "r1 0 off"
    ),
    // A route that names a format takes the requests of an earlier one that does not.
    (["POST /a * x"], ["POST /a * x", "POST /a.json * y"], "r0 1 caller"),
    (["POST /a * x"], ["POST /a * x", "* /a.json * off"], "r0 1 off"),
    // So does one that fits them by its pattern, or is the first to fit them once another is gone.
    (["POST /a * x"], ["POST /a * x", "* * * y"], "r0 1 caller"),
    (["POST /a * x"], ["POST /a * x", "PUT /{v} h.example y"], "r0 1 caller"),
    (["POST /a/b * x"], ["POST /a/b * x", "POST /a/** * y"], "r0 1 caller"),
    (["POST /a/** * x"], ["POST /a/** * x", "POST /{v} * y"], "r0 1 caller"),
    (["POST /a * x"], ["POST /a * x", "POST /a.json/** * y"], "r0 1 caller"),
    (["POST /a * x", "* /** * off"], ["POST /a * x", "* /** * y"], "r0 1 caller"),
    (["POST /a * x"], ["POST /a * x exact", "POST /a * x"], "r0 0 spelling"),
    (["POST /a * x", "* /{v} * off", "* /** * y"], ["POST /a * x", "* /** * y"], "r0 1 caller"),
    // Text is compared, not requests: what is wider, divided or elsewhere may be the same.
    (["POST /a * x"], ["POST /a/** * x"], "r0 none"), (["POST,PUT /a * x"], ["PUT /a * x"], "r0 none"),
    (["POST /a * x"], ["PUT /a * y", "POST /a * x"], "r0 0 caller"),
    (["POST /a:b * x"], ["POST /a%3Ab * off", "POST /a:b * x"], "r0 0 off"),
    (["POST /a//{v} * x exact"], ["POST /{v}/c * y", "POST /a//{v} * x exact"], "r0 0 caller"),
  ]) func `requests whose identity changes are found`(old: [String], new: [String], expected: String) throws {
    #expect(try Self.changes(old, new) == [expected])
  }

  /// The routes and requests of a small world, in which random lists of routes are compared by all requests, too.
  private enum World {
    static let methods = ["*", "*", "POST", "GET", "POST,GET"]
    static let paths = [
      "/a", "/b", "/a/b", "/{v}", "/{v}/b", "/a/**", "/**", "*", "/a//b", "/{v}/c", "/%61", "/a.json",
    ]
    static let callers = ["x", "x", "y", "off", "shadow"]
    static let spellings = ["", "", " caseless", " exact"]
    static let requests = ["POST", "GET", "PUT"].flatMap { method in
      [
        "/a", "/A", "/b", "/a/", "/a/b", "/A/b", "//a/b", "/a//b", "/c", "/c/b", "/c/d", "/a/c", "/a;x/b",
        "/a.json", "/b.xml", "/a/b.js", "/c/b.json", "/a//b.csv",
      ].map { (method, $0) }
    }

    static func route(_ generator: inout Numbers) -> String {
      func pick(_ words: [String]) -> String { words.randomElement(using: &generator) ?? "" }
      return "\(pick(methods)) \(pick(paths)) * \(pick(callers))\(pick(spellings))"
    }

    /// The list after one to three random changes.
    static func changed(_ lines: [String], _ generator: inout Numbers) -> [String] {
      var lines = lines
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let place = Int.random(in: 0...lines.count, using: &generator)
        switch Int.random(in: 0..<5, using: &generator) {
        case 0: lines.insert(route(&generator), at: place)
        case 1 where place < lines.count: lines.remove(at: place)
        case 2: lines.shuffle(using: &generator)
        case 3 where place < lines.count:
          var words = lines[place].split(separator: " ").map(String.init)
          words[3] = callers.randomElement(using: &generator) ?? ""
          lines[place] = words.joined(separator: " ")
        default: lines.append(route(&generator))
        }
      }
      return lines
    }
  }

  /// Numbers that are the same in each run.
  private struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var value = state
      value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
      value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
      return value ^ (value >> 31)
    }
  }

  /// The route that a request meets, and its caller's part if it is protected.
  private static func met(_ request: (method: String, path: String), _ table: RouteTable) -> (
    name: String, caller: [CallerPart]?
  )? {
    let head = MessageHead(start: .status(0, reason: 0..<0))
    let route = Array(request.method.utf8).withUnsafeBytes { method in
      Array("h".utf8).withUnsafeBytes { host in
        Array(request.path.utf8).withUnsafeBytes { path in
          table.route(for: head, method: method, host: host, path: path)
        }
      }
    }
    return route.map { ($0.policy.name, $0.policy.isEnforced ? $0.policy.caller?.parts : nil) }
  }

  @Test func `no request of an unchanged route gets another identity, or none`() throws {
    var accepted = 0
    for seed in 0..<2000 as Range<UInt64> {
      var generator = Numbers(state: seed)
      let old = (0...Int.random(in: 0..<4, using: &generator)).map { _ in World.route(&generator) }
      let new = World.changed(old, &generator)
      let (before, after) = (
        try old.enumerated().map { try Self.route($1, at: $0) },
        try new.enumerated().map { try Self.route($1, at: $0) }
      )
      let changes = IdentityChange.all(
        from: before.map(RouteIdentity.init), to: after.map(RouteIdentity.init))
      let (oldTable, newTable) = (RouteTable(before), RouteTable(after))
      let changed = Set(changes.map(\.route.name))
      if changed.isEmpty, before.contains(where: \.isEnforced) { accepted += 1 }
      for request in World.requests {
        guard let met = Self.met(request, oldTable), let caller = met.caller, !changed.contains(met.name)
        else { continue }
        #expect(Self.met(request, newTable)?.caller == caller, "\(request): \(old) → \(new)")
      }
    }
    #expect(accepted > 200)
  }

  @Test func `a long list is compared quickly`() throws {
    let lines = (0..<1000).map { "POST /v1/r\($0)/{id} * x" } + ["* /** * y"]
    let old = try Self.routes(lines)
    let new = try Self.routes(["POST /v2/** * z"] + lines)
    let begun = Self.processorTime
    #expect(IdentityChange.all(from: old, to: new).count == 1)
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
