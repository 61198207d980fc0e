@testable import SemelClient
import Testing

/// The schedule and the budget, for random settings and random events.
struct RetryTests {
  @Test(arguments: 0..<50)
  func `a pause lies between nothing and its bound, and the bound doubles up to its maximum`(seed: UInt64) {
    var generator = SeededGenerator(seed)
    let first = Duration.milliseconds(Int64.random(in: 1...5000, using: &generator))
    let backoff = Backoff(first: first, max: .seconds(Int64.random(in: 5...4000, using: &generator)))
    var previous = Duration.zero
    for retry in 0..<100 {
      let bound = backoff.bound(retry: retry, isThrottled: false)
      let pause = backoff.pause(retry: retry, isThrottled: false, random: generator.next())
      #expect(pause >= .zero && pause <= bound && bound <= backoff.max)
      #expect(bound == backoff.max || retry == 0 || bound == previous * 2)
      previous = bound
    }
    #expect(previous == backoff.max)
  }

  @Test func `the jitter is full: pauses reach both ends of their range`() {
    let backoff = Backoff(max: .seconds(20))
    var generator = SeededGenerator(7)
    let pauses = (0..<20_000).map { _ in
      backoff.pause(retry: 4, isThrottled: false, random: generator.next()).milliseconds
    }
    #expect(pauses.min() ?? 800 < 8 && pauses.max() ?? 0 > 792)
    let mean = Double(pauses.reduce(0, +)) / Double(pauses.count)
    #expect(abs(mean - 400) < 10)
  }

  @Test func `a server with too much to do gets longer pauses`() {
    let backoff = Backoff(max: .seconds(20))
    #expect(backoff.bound(retry: 0, isThrottled: false) == .milliseconds(50))
    #expect(backoff.bound(retry: 0, isThrottled: true) == .seconds(1))
    #expect(backoff.bound(retry: 3, isThrottled: true) == .seconds(8))
    #expect(backoff.bound(retry: 9, isThrottled: false) == .seconds(20))
  }

  @Test(arguments: 0..<50)
  func `the bucket never grants more retries than its tokens and the successes pay for`(seed: UInt64) {
    var generator = SeededGenerator(seed)
    var budget = RetryBudget(.bucket())
    var paid = 500
    for _ in 0..<2000 {
      if Bool.random(using: &generator) {
        budget.succeeded()
        paid = min(500, paid + 1)
      } else {
        let isThrottled = Bool.random(using: &generator)
        let cost = isThrottled ? 5 : 14
        let isGranted = budget.failed(isThrottled: isThrottled)
        #expect(isGranted == (paid >= cost))
        if isGranted { paid -= cost }
      }
      #expect(budget.tokens == Double(paid))
    }
  }

  @Test func `an outage of a host ends its retries after 35`() {
    var budget = RetryBudget(.bucket())
    var granted = 0
    while budget.failed(isThrottled: false) { granted += 1 }
    #expect(granted == 35)
    for _ in 0..<4 { budget.succeeded() }
    let isGranted = budget.failed(isThrottled: false)
    #expect(isGranted)
    let isGrantedAgain = budget.failed(isThrottled: false)
    #expect(!isGrantedAgain)
  }

  @Test func `by gRPC's ratio there are retries while more than half of the tokens are left`() {
    var budget = RetryBudget(.ratio(maxTokens: 10, ratio: 0.5))
    var granted = 0
    while budget.failed(isThrottled: false) { granted += 1 }
    #expect(granted == 4)
    for _ in 0..<13 { budget.succeeded() }
    let isGranted = budget.failed(isThrottled: false)
    #expect(isGranted)
  }

  @Test func `the hosts' budgets are apart`() {
    let budgets = RetryBudgets()
    while budgets.failed(at: "a", isThrottled: false) {}
    #expect(budgets.failed(at: "b", isThrottled: false))
    #expect(budgets.tokens(of: "a") == 10)
  }
}

/// A generator that makes the same numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
