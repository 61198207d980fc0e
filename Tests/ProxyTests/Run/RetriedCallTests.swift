import Idempotency
import Synchronization
import Testing

@testable import Proxy

/// The count of a request in its upstream's retry budget.
struct RetriedCallTests {
  @Test(arguments: [true, false])
  func `a request leaves the budget once, also if nobody ends it`(isEnded: Bool) {
    let upstream = RetryBudgets().budget(of: "backend")
    func counts() -> [Int] { upstream.budget.withLock { [$0.inFlight, $0.retrying] } }
    do {
      let call = RetriedCall(of: upstream)
      #expect(call.beginRetrying(percent: 20) && call.beginRetrying(percent: 20))
      #expect(counts() == [1, 1])
      if isEnded {
        call.end()
        #expect(counts() == [0, 0])
      }
    }
    #expect(counts() == [0, 0])
  }
}
