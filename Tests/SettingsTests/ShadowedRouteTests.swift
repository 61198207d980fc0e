import Idempotency
import TestSupport
import Testing

@testable import Settings

/// The search for routes that are never met.
struct ShadowedRouteTests {
  private static let paths: [String?] = [
    nil, "/", "/a", "/a/", "/A", "/a/b", "/a//b", "/a/{x}", "/{y}", "/{y}/b", "/a/**", "/**", "/a;x=1",
    "/b%20c",
    "/b/{x}/**",
  ]
  private static let hosts: [String?] = [nil, nil, "h.example", "H.example", "*.example"]
  private static let methods: [String?] = [nil, "[POST]", "[GET, POST]"]

  /// The member with one of the values; none for `nil`.
  private func member(_ name: String, _ values: [String?], _ random: inout SeededGenerator) -> [String] {
    guard let value = values.randomElement(using: &random) ?? nil else { return [] }
    return ["\(name): \(value.hasPrefix("[") ? value : "'\(value)'")"]
  }

  /// A route with conditions by chance, in one line.
  private func route(_ number: Int, _ random: inout SeededGenerator) -> String {
    let match =
      member("methods", Self.methods, &random) + member("path", Self.paths, &random)
      + member("host", Self.hosts, &random)
    let spelling = member("spelling", ["lenient", "caseless", "exact"], &random).joined()
    return "  - {name: r\(number), match: {\(match.joined(separator: ", "))}, \(spelling), "
      + "caller: {parts: [address]}}"
  }

  @Test(arguments: 1...16)
  func `each route is found that an earlier one covers, with the first that does`(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let lines = (0..<40).map { route($0, &random) }
    let head = upstream + "routes:\n"
    let policies = try lines.map { try load(head + $0 + "\n").routes[0] }
    let expected = policies.enumerated().compactMap { index, policy in
      policies[..<index].firstIndex { $0.covers(policy) }.map { other in
        "\(index + 3):5: routes[\(index)]: r\(index) is never met: r\(other) (routes[\(other)], line \(other + 3)) "
          + "takes all of its requests; write it before that one, or narrow that one's match"
      }
    }
    #expect(!expected.isEmpty && expected.count < lines.count)
    #expect(issues(head + lines.joined(separator: "\n") + "\n") == expected)
  }

  @Test func `a route is compared with few of thousands that have other paths`() throws {
    let routes = (0..<1600).map {
      "  - {name: r\($0), match: {methods: [POST], path: /v1/shop\($0 % 7)/r\($0)}, caller: {parts: [address]}}\n"
    }
    var index = CoverIndex()
    for policy in try load(upstream + "routes:\n" + routes.joined()).routes {
      #expect(index.candidates(for: policy).isEmpty)
      index.add(policy)
    }
  }
}
