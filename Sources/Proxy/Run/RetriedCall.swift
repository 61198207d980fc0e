import Idempotency
import NIOCore
import Platform
import Synchronization
import Wire

/// A request of a route with retries, as the budget of its upstream counts it, from its first attempt to its end.
/// Confined to the loop of its delivery, hence `@unchecked Sendable`.
final class RetriedCall: @unchecked Sendable {
  private let upstream: UpstreamRetries
  private let startedAt = NIODeadline.now()
  private var isRetrying = false
  private var hasEnded = false

  init(of upstream: UpstreamRetries) {
    self.upstream = upstream
    upstream.budget.withLock { $0.began() }
  }

  deinit { end() }

  /// The time since its first attempt began.
  var elapsed: Milliseconds { Milliseconds(NIODeadline.now() - startedAt) }

  /// Takes its place in the budget, once for all of its retries; false if the budget is spent.
  func beginRetrying(percent: Int) -> Bool {
    invariant(!hasEnded, "a request is retried that has ended")
    if !isRetrying { isRetrying = upstream.budget.withLock { $0.beginRetrying(percent: percent) } }
    return isRetrying
  }

  func end() {
    guard !hasEnded else { return }
    hasEnded = true
    upstream.budget.withLock { $0.ended(isRetrying: isRetrying) }
  }
}

/// The retry budget of one upstream, shared by all event loops.
final class UpstreamRetries: Sendable {
  let budget = Mutex(RetryBudget())
}

/// The retry budgets of all upstreams, by their names.
final class RetryBudgets: Sendable {
  private let upstreams = Mutex<[String: UpstreamRetries]>([:])

  func budget(of upstream: String) -> UpstreamRetries {
    upstreams.withLock { upstreams in
      if let known = upstreams[upstream] { return known }
      let new = UpstreamRetries()
      upstreams[upstream] = new
      return new
    }
  }
}
