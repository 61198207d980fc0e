import Idempotency
import NIOCore
import Platform
import Synchronization
import Telemetry
import Wire

// The retries on the client's behalf.
extension OwnedRun {
  /// Returns the release of a record that becomes free: after the pause before the next attempt, if Semel makes one
  /// itself.
  ///
  /// - Parameter end: The end of the attempt.
  @inline(never)
  func releaseAfterPause(_ release: Release, after end: RetriableEnd) async -> Release {
    guard let retries = call.route.policy.retries, let retried = call.retried, mayRetry else {
      return release
    }
    var random = SystemRandomNumberGenerator()
    switch call.lifecycle.retry(after: end, elapsed: retried.elapsed, using: &random) {
    case .pass: return release
    case .stop(let reason): count(reason)
    case .wait(let pause):
      if retried.beginRetrying(percent: retries.budget) { return await self.pause(pause, before: release) }
      count(.budget)
    }
    return release
  }

  /// Whether a client is certainly there for the response of a retry, none of the last response has reached it, and the
  /// process does not end.
  private var mayRetry: Bool {
    delivery.responseState == .none && delivery.isConnected && !delivery.isHalfClosed
      && !worker.environment.isDraining
  }

  /// Waits before a retry and keeps the claim meanwhile. If the record were free, each waiting duplicate would run at
  /// once, outside the budget. The connection to the backend is given back first.
  @inline(never)
  private func pause(_ span: Milliseconds, before release: Release) async -> Release {
    exchange.close()
    owned.run.pauses(before: release)
    let signal = Signal(timers: worker.context.timers)
    delivery.didDisconnect = { signal.set() }
    delivery.didHalfClose = { signal.set() }
    let number = worker.pauses.enter(signal)
    // A shutdown that has begun before does not set this signal.
    if !worker.environment.isDraining { _ = await signal.wait(milliseconds: span.count) }
    worker.pauses.leave(number)
    delivery.didDisconnect = nil
    delivery.didHalfClose = nil
    let release = owned.run.permitted(release)
    guard mayRetry else { return release }
    countRetry()
    return call.lifecycle.beginRetry(inPlaceOf: release)
  }

  private func countRetry() {
    worker.metrics.add(.clientRetries, route: call.route.number)
    // The log entry takes one cause, that of its last attempt.
    if let cause = delivery.logEntry.retry { worker.metrics.add(cause, route: call.route.number) }
  }

  private func count(_ reason: RetryStop) {
    worker.metrics.add(reason, route: call.route.number)
  }
}

extension BackendResponse {
  /// The end of the attempt for the decision on a retry.
  var retriableEnd: RetriableEnd {
    .response(status: head.status, retryAfter: RetryAfter(of: head, now: WallClock.seconds))
  }
}

extension RetriableEnd {
  /// The end of an attempt without a response that can be read, whose record is released.
  init(_ failure: UpstreamFailure) {
    if case .malformed(let status, _) = failure {
      self = .response(status: status, retryAfter: .none)
    } else {
      self = .notExecuted
    }
  }
}

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
