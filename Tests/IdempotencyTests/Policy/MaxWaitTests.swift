import Idempotency
import Testing
import Wire

/// The time for which a duplicate may wait.
struct MaxWaitTests {
  private static func maxWait(_ duplicates: RoutePolicy.Duplicates, _ preferences: [String]) -> Int64 {
    var policy = RoutePolicy(
      name: "r", match: RouteMatch(), upstream: UpstreamSettings(name: "u", address: .unix(path: "/s")))
    policy.duplicates = duplicates
    policy.waitTimeout = .seconds(30)
    var request = Request()
    request.fields = preferences.map { ("Prefer", $0) }
    return policy.maxWait(for: request.head).count / 1000
  }

  @Test(
    arguments: [
      ([], 30), (["wait=5"], 5), (["wait=0"], 0), (["wait=99"], 30), (["wait=999999999999999999999"], 30),
      (["return=minimal, WAIT = 7"], 7), (["wait=\"8\"; x=y"], 8), (["return=minimal", "wait=9"], 9),
      (["wait"], 30), (["wait=x"], 30), (["wait=-1"], 30), (["wait=", "wait=4"], 4),
      (["wait=3", "wait=4"], 3),
    ] as [([String], Int64)])
  func `a client may prefer a shorter wait`(preferences: [String], seconds: Int64) {
    #expect(Self.maxWait(.wait, preferences) == seconds)
  }

  @Test(arguments: [
    ["respond-async, wait=5"], ["wait=5, Respond-Async"], ["wait=0", "respond-async; x=y"],
    ["respond-async=\"\", wait=5"],
  ])
  func `beside respond-async the wait is the backend's, and the route's counts`(preferences: [String]) {
    #expect(Self.maxWait(.wait, preferences) == 30)
    #expect(Self.maxWait(.reject, preferences) == 0)
    #expect(Self.maxWait(.wait, ["respond-asynchronously", "wait=5"]) == 5)
  }

  @Test func `a route that rejects duplicates lets those wait that prefer it`() {
    #expect(Self.maxWait(.reject, []) == 0)
    #expect(Self.maxWait(.reject, ["wait=5"]) == 5)
  }
}
