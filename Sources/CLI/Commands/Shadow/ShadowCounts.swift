/// The counts of one shadowed route, as the metrics page has them.
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
  /// The requests that would have waited for the outcome of another delivery.
  let waited: Int
  let passed: Int
  let unprotected: Int
  /// The requests that would have been refused, by the code of the problem.
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

  /// Reads the counts of all shadowed routes, by their names.
  ///
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
