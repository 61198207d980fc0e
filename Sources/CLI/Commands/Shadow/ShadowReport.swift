import ArgumentParser
import Foundation

struct ShadowReport: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shadow-report",
    abstract: "Show what a running Semel would have done on its shadowed routes.",
    discussion: """
      The counts are those of one node since its start. WAITED: requests that would have waited for the outcome of \
      another delivery. RUN AGAIN: requests that the backend ran although it had run, or was running, an earlier one of \
      the same intent; Semel would have prevented each of them. A backend with a table of keys of its own may have \
      recognised them, and Semel cannot see that: what such a backend did with them is in its own table.
      """)

  @Flag(help: "Print JSON, a line for each route.")
  var json = false

  @OptionGroup var call: AdminCall

  func run() throws {
    let page = String(decoding: try call.send("GET", "/metrics"), as: UTF8.self)
    guard page.contains("semel_build_info") else { throw call.otherListener }
    let routes = ShadowCounts.read(page)
    guard !json else { return try printJSON(routes) }
    guard !routes.isEmpty else {
      return print("No route is shadowed, or no request of one has come since Semel started.")
    }
    printTable(routes)
    guard routes.contains(where: { $0.runAgain > 0 }) else { return }
    print(
      "RUN AGAIN counts requests that reached the backend again. A table of keys of its own may have recognised them."
    )
  }

  private func printJSON(_ routes: [ShadowCounts]) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    for route in routes { print(String(decoding: try encoder.encode(route), as: UTF8.self)) }
  }

  private func printTable(_ routes: [ShadowCounts]) {
    let width = max(5, routes.map(\.route.count).max() ?? 0) + 2
    let titles = [
      "REQUESTS", "EXECUTED", "REPLAYED", "WAITED", "REFUSED", "PASSED", "UNPROTECTED", "RUN AGAIN",
    ]
    print("ROUTE".padding(toLength: width, withPad: " ", startingAt: 0) + titles.joined(separator: "  "))
    for route in routes {
      let refused = route.refused.values.reduce(0, +)
      let counts = [
        route.requests, route.executed, route.replayed, route.waited, refused, route.passed,
        route.unprotected, route.runAgain,
      ]
      let columns = zip(titles, counts).map { title, count in
        String(repeating: " ", count: max(0, title.count - "\(count)".count)) + "\(count)"
      }
      print(
        route.route.padding(toLength: width, withPad: " ", startingAt: 0) + columns.joined(separator: "  "))
      guard refused > 0 else { continue }
      let codes = route.refused.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
      print("  refused: " + codes.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
    }
  }
}

struct ShadowCounts: Encodable {
  /// The ends of requests that came after another one of the same intent, which the backend had run or was running.
  private static let duplicates = [
    "replayed", "waited", "in_flight", "outcome_unknown", "response_not_kept", "key_expired",
  ]
  private static let notRefused = ["executed", "replayed", "waited", "passed", "unprotected"]

  let route: String
  let requests: Int
  let executed: Int
  let replayed: Int
  let waited: Int
  let passed: Int
  let unprotected: Int
  let refused: [String: Int]
  /// The requests that the backend ran although it had run, or was running, an earlier one of the same intent.
  let runAgain: Int

  private enum CodingKeys: String, CodingKey {
    case route, requests, executed, replayed, waited, passed, unprotected, refused
    case runAgain = "run_again"
  }

  private init(route: String, ends: [String: Int]) {
    self.route = route
    requests = ends.values.reduce(0, +)
    executed = ends["executed", default: 0]
    replayed = ends["replayed", default: 0]
    waited = ends["waited", default: 0]
    passed = ends["passed", default: 0]
    unprotected = ends["unprotected", default: 0]
    refused = ends.filter { !Self.notRefused.contains($0.key) }
    runAgain = Self.duplicates.reduce(0) { $0 + ends[$1, default: 0] }
  }

  /// - Parameter page: The metrics page. Names of routes and ends need no escapes in it.
  static func read(_ page: String) -> [ShadowCounts] {
    var routes: [String: [String: Int]] = [:]
    for line in page.split(separator: "\n") where line.hasPrefix("semel_shadow_total{") {
      let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
      guard parts.count == 5, let count = parts[4].split(separator: " ").last.flatMap({ Int($0) }) else {
        continue
      }
      routes[String(parts[1]), default: [:]][String(parts[3]), default: 0] += count
    }
    return routes.sorted { $0.key < $1.key }.map { ShadowCounts(route: $0.key, ends: $0.value) }
  }
}
