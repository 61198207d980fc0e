import Idempotency
import NIOCore
import Platform
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
