import TestSupport
import Testing
import Wire

@testable import Idempotency

/// The comparison's search, which leaves out routes that cannot have requests in common.
struct WitnessSearchTests {
  private static let upstream = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))
  private static let paths: [String?] = [
    nil, "/", "/**", "/{x}", "/{x}/**", "/a", "/A", "/a/", "//a", "/a/b", "/a//b", "/a/{y}", "/{x}/b",
    "/a/**",
    "/a/b/{z}", "/a/{y}/c", "/a;x=1", "/a%3Ab", "/a:b", "/b%20c", "/%3Bx/b", "/a%252F", "/é",
  ]
  private static let hosts: [String?] = [nil, nil, "h.example", "*.example", "*.h.example", "i.other"]
  private static let methods: [[String]] = [[], [], ["POST"], ["GET", "POST"], ["PURGE"]]
  private static let fields: [[RequiredHeader]] = [
    [], [], [RequiredHeader(name: "x-a", value: "1")], [RequiredHeader(name: "x-a", value: "2")],
    [RequiredHeader(name: "x-a", value: "1"), RequiredHeader(name: "x-b", value: "3")],
  ]

  /// A route with conditions by chance.
  private static func route(_ number: Int, _ random: inout SeededGenerator) throws -> RoutePolicy {
    func one<Element>(of values: [Element]) -> Element {
      values[Int.random(in: values.indices, using: &random)]
    }
    var match = RouteMatch(methods: one(of: methods), host: one(of: hosts), headers: one(of: fields))
    match.path = try one(of: paths).map { try PathPattern(parsing: $0) }
    if one(of: [true, false, false, false]) { match.graphql = .mutation }
    var policy = RoutePolicy(name: "r\(number)", match: match, upstream: upstream)
    policy.spelling = one(of: RoutePolicy.Spelling.allCases)
    policy.caller = CallerPolicy(parts: [one(of: [.address, .address, .header("x")])])
    if one(of: [true, false, false, false]) { policy.idempotency = .off }
    return policy
  }

  /// The routes with one left out, one added, and one that moves to the front.
  private static func changed(
    _ routes: [RoutePolicy], _ random: inout SeededGenerator
  ) throws -> [RoutePolicy] {
    var routes = routes
    routes.remove(at: Int.random(in: routes.indices, using: &random))
    routes.insert(try route(99, &random), at: Int.random(in: routes.indices, using: &random))
    routes.insert(routes.remove(at: Int.random(in: routes.indices, using: &random)), at: 0)
    return routes
  }

  /// The new routes that match an old one's requests, with all routes compared and each of them tried.
  private static func meetings(
    of index: Int, from old: [RoutePolicy], to new: [RoutePolicy]
  ) -> Set<Int?> {
    let witnesses = RequestWitnesses(old + new)
    let (oldTable, newTable) = (RouteTable(old), RouteTable(new))
    var met: Set<Int?> = []
    for other in new.map(Optional.some) + [nil] {
      for witness in witnesses.common(old[index], other) where witness.route(in: oldTable)?.index == index {
        met.insert(witness.route(in: newTable)?.index)
      }
    }
    return met
  }

  /// The changes that follow from the requests of one old route.
  private static func changes(
    of index: Int, from old: [RoutePolicy], to new: [RoutePolicy]
  ) -> [IdentityChange] {
    guard let identity = RequestIdentity(old[index]) else { return [] }
    return meetings(of: index, from: old, to: new).compactMap { met in
      guard let met else { return IdentityChange(route: index, end: .unmatched) }
      guard let other = RequestIdentity(new[met]) else {
        return IdentityChange(route: index, end: .unprotected(by: met))
      }
      let members = identity.changes(to: other)
      return members.isEmpty
        ? nil : IdentityChange(route: index, end: .identified(by: met, members: members))
    }
  }

  @Test(arguments: 1...24)
  func `the search finds what a comparison of all routes finds`(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let old = try (0..<9).map { try Self.route($0, &random) }
    let new = try Self.changed(old, &random)
    let comparison = IdentityComparison(from: old, to: new)
    var expected: [IdentityChange] = []
    for index in old.indices {
      let changes = Self.changes(of: index, from: old, to: new)
      expected += changes
      let met = Self.meetings(of: index, from: old, to: new)
      #expect(
        comparison.overlaps { $0.name == old[index].name }
          == (RequestIdentity(old[index]) != nil && met.contains { $0 != nil }))
    }
    let found = comparison.changes()
    #expect(found.count == expected.count)
    #expect(Set(found) == Set(expected))
  }

  @Test func `each route is left out only where it has no request in common`() throws {
    var random = SeededGenerator(seed: 1)
    let routes = try (0..<60).map { try Self.route($0, &random) }
    let comparison = IdentityComparison(from: routes, to: routes)
    let witnesses = RequestWitnesses(routes)
    var left = 0
    for index in routes.indices {
      let expected = routes.indices.filter { !witnesses.common(routes[index], routes[$0]).isEmpty }
      #expect(comparison.candidates(of: index) == expected)
      left += routes.count - expected.count
    }
    #expect(left > 0)
  }

  @Test func `a route is compared with few of thousands that have other paths`() throws {
    var routes = try (0..<3000).map { number in
      let path = try PathPattern(parsing: "/v\(number % 3)/r\(number)/{id}")
      return RoutePolicy(name: "r\(number)", match: RouteMatch(path: path), upstream: Self.upstream)
    }
    let rest = RouteMatch(path: try PathPattern(parsing: "/**"))
    routes.append(RoutePolicy(name: "rest", match: rest, upstream: Self.upstream))
    let comparison = IdentityComparison(from: routes, to: routes)
    let table = WitnessTable(routes)
    for index in routes.indices.dropLast() {
      #expect(comparison.candidates(of: index) == [index, 3000])
      let path = Array("/V\(index % 3)/r\(index);x=1/7".utf8)
      #expect(table.candidates(host: [1], path: path) == [index, 3000])
    }
    #expect(comparison.candidates(of: 3000).count == 3001)
  }

  @Test(
    arguments: [
      // One path; further, the loosest one, and both with a slash at the end.
      ([.lenient], 1), ([.caseless], 1), ([.lenient, .caseless], 1), ([.caseless, .lenient], 2),
      ([.exact], 2), ([.exact, .lenient], 2), ([.lenient, .exact], 4), ([.caseless, .lenient, .exact], 4),
    ] as [([RoutePolicy.Spelling], Int)])
  func `two routes make few paths, however many segments their patterns have`(
    spellings: [RoutePolicy.Spelling], count: Int
  ) throws {
    let long = ["/v1/area/{a}/things/{b}/parts/{c}/items/{d}", "/v1/{x}/b/{y}/q/{z}/r/{w}/**"]
    let others = Array(repeating: "/other", count: spellings.count - 1)
    let routes = try (long + others).enumerated().map { number, path in
      let match = RouteMatch(path: try PathPattern(parsing: path))
      var policy = RoutePolicy(name: "r\(number)", match: match, upstream: Self.upstream)
      policy.spelling = spellings[max(0, number - 1)]
      return policy
    }
    let paths = Set(RequestWitnesses(routes).common(routes[0], routes[1]).map(\.path))
    #expect(paths.count == count)
  }

  @Test func `a route is compared once with all that differ in hosts that are not its own`() throws {
    let policies = (0..<400).map { number in
      RoutePolicy(name: "r\(number)", match: RouteMatch(host: "h\(number).example"), upstream: Self.upstream)
    }
    let any = RoutePolicy(name: "any", match: RouteMatch(), upstream: Self.upstream)
    let comparison = IdentityComparison(from: policies + [any], to: policies + [any])
    #expect(comparison.candidates(of: 7).count == 401)
    #expect(comparison.partners(of: 7) == [0])
    #expect(comparison.partners(of: 400).count == 401)
    #expect(WitnessTable(policies).candidates(host: Array("H7.example".utf8), path: [0x2F]) == [7])
  }
}
