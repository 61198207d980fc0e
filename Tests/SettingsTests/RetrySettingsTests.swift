import Idempotency
import Settings
import Testing

struct RetrySettingsTests {
  @Test func `retries are off by default, and have defaults of their own`() throws {
    #expect(try load(route("idempotency: required")).routes.first?.retries == nil)
    #expect(try load(route("retries: off")).routes.first?.retries == nil)
    let retries = try #require(try load(route("retries: {max: 2}")).routes.first?.retries)
    #expect(retries == RetryPolicy())
    #expect(retries.max == 2 && retries.backoff == 100 && retries.maxBackoff == 2000)
    #expect(retries.budget == 20 && retries.on == [408, 425, 429, 503])
  }

  @Test func `all members are read`() throws {
    let text = route(
      "outcomes: {retry: [500]}, retries: {max: 5, backoff: 1s, max_backoff: 3s, budget: 50%, on: [500]}")
    var expected = RetryPolicy()
    expected.max = 5
    expected.backoff = 1000
    expected.maxBackoff = 3000
    expected.budget = 50
    expected.on = [500]
    #expect(try load(text).routes.first?.retries == expected)
  }

  @Test func `a route switches the defaults' retries off, or changes them`() throws {
    let text =
      upstream + """
        defaults: {caller: {parts: [address]}, retries: {max: 4, budget: 10%}}
        routes: [{name: a, match: {path: /a}, retries: off}, {name: b, retries: {max: 1}}]
        """
    let routes = try load(text).routes
    #expect(routes.map(\.retries?.max) == [nil, 1])
    #expect(routes.last?.retries?.budget == 10)
  }

  @Test(arguments: [
    ("retries: on", "retries: must be off, or members such as {max: 2}"),
    ("retries: {max: 0}", "retries.max: must be a whole number from 1 to 20"),
    ("retries: {budget: 20}", "retries.budget: must be from 0% to 100%"),
    ("retries: {budget: 101%}", "retries.budget: must be from 0% to 100%"),
    (
      "retries: {backoff: 3s}",
      "retries.backoff: must not be longer than max_backoff, which is 2s by default: 3s"
    ),
    ("retries: {on: [9]}", "retries.on[0]: must be a status from 200 to 599"),
    (
      "retries: {on: [500]}",
      "retries.on[0]: is of class final on this route, and never repeated; list it under outcomes.retry, or take it out"
    ),
    (
      "retries: {on: [502]}",
      "retries.on[0]: is of class unknown on this route, and never repeated; list it under outcomes.retry, or take it out"
    ),
    (
      "retries: {times: 2}",
      "retries.times: unknown member; allowed are max, backoff, max_backoff, budget, on"
    ),
  ])
  func `what cannot be meant is refused`(members: String, issue: String) throws {
    let found = issues(route(members))
    #expect(found.count == 1)
    #expect(found.first?.hasSuffix("routes[0].\(issue)") == true, "\(found)")
  }
}
