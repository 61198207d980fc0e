import Idempotency
import Testing

struct RetryPolicyTests {
  /// The least or the greatest number of a range. (`Int64.random` draws again after 0, which is one too many.)
  private struct Extremes: RandomNumberGenerator {
    var isGreatest: Bool
    mutating func next() -> UInt64 { isGreatest ? .max : 1 }
  }

  private static let busy = RetriableEnd.response(status: 503, retryAfter: .none)

  private func decide(
    _ policy: RetryPolicy = RetryPolicy(), after end: RetriableEnd = busy, made: Int = 0,
    elapsed: Milliseconds = 0, limit: Milliseconds = 10_000, greatest: Bool = true
  ) -> RetryDecision {
    var random = Extremes(isGreatest: greatest)
    return policy.decision(after: end, made: made, elapsed: elapsed, limit: limit, using: &random)
  }

  @Test(arguments: [(0, 100), (1, 200), (4, 1600), (5, 2000), (40, 2000)] as [(Int, Int64)])
  func `the pause is drawn from zero to a bound that doubles up to its maximum`(made: Int, bound: Int64) {
    var policy = RetryPolicy()
    policy.max = 100
    #expect(decide(policy, made: made) == .wait(Milliseconds(bound)))
    #expect(decide(policy, made: made, greatest: false) == .wait(0))
  }

  @Test(arguments: [408, 425, 429, 503])
  func `the listed statuses are retried`(status: Int) {
    #expect(decide(after: .response(status: status, retryAfter: .none)) == .wait(100))
  }

  @Test(arguments: [401, 403, 407, 421, 423, 500, 502, 504])
  func `other statuses are passed on`(status: Int) {
    #expect(decide(after: .response(status: status, retryAfter: .none)) == .pass)
  }

  @Test func `what was not executed is retried`() {
    #expect(decide(after: .notExecuted) == .wait(100))
  }

  @Test func `the backend's Retry-After is a lower bound`() {
    #expect(decide(after: .response(status: 429, retryAfter: .span(3000))) == .wait(3000))
    #expect(decide(after: .response(status: 429, retryAfter: .span(0)), greatest: false) == .wait(0))
    #expect(decide(after: .response(status: 429, retryAfter: .span(11_000))) == .stop(.late))
    #expect(decide(after: .response(status: 429, retryAfter: .unreadable)) == .stop(.late))
  }

  @Test func `retries end at their maximum, and begin within the limit`() {
    #expect(decide(made: 2) == .stop(.exhausted))
    #expect(decide(elapsed: 9900) == .wait(100))
    #expect(decide(elapsed: 9901) == .stop(.late))
  }

  @Test(
    arguments: [
      ([], .none), (["2"], .span(2000)), (["0"], .span(0)), (["soon"], .unreadable), (["-1"], .unreadable),
      (["1", "2"], .unreadable), (["99999999999999"], .span(.seconds(1 << 32))),
      (["Sun, 06 Nov 1994 08:49:37 GMT"], .span(7000)), (["Sun, 06 Nov 1994 08:49:20 GMT"], .span(0)),
      (["Sunday, 06-Nov-94 08:49:37 GMT"], .span(7000)), (["Sun Nov  6 08:49:37 1994"], .span(7000)),
    ] as [([String], RetryAfter)])
  func `Retry-After is seconds or a date`(fields: [String], expected: RetryAfter) {
    var message = Request()
    message.fields = fields.map { ("Retry-After", $0) }
    #expect(RetryAfter(of: message.head) { 784_111_770 } == expected)
  }
}

struct RetryBudgetTests {
  @Test func `three retries are always allowed`() {
    var budget = RetryBudget()
    for _ in 0..<4 { budget.began() }
    let allowed = (0..<4).map { _ in budget.beginRetrying(percent: 20) }
    #expect(allowed == [true, true, true, false])
  }

  @Test func `of many requests in flight only the share is retried, and places are given back`() {
    var budget = RetryBudget()
    for _ in 0..<100 { budget.began() }
    let allowed = (0..<100).count { _ in budget.beginRetrying(percent: 20) }
    #expect(allowed == 20)
    budget.ended(isRetrying: true)
    // 20 % of 99 are 19.
    let isOver = !budget.beginRetrying(percent: 20)
    budget.ended(isRetrying: true)
    let isWithin = budget.beginRetrying(percent: 20)
    #expect(isOver && isWithin)
    #expect(budget.inFlight == 98 && budget.retrying == 19)
  }
}
