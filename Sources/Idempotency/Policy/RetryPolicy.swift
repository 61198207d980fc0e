import Wire

/// The retries that Semel makes on a client's behalf on one route.
public struct RetryPolicy: Hashable, Sendable {
  /// The maximum number of retries for one delivery.
  public var max = 2
  /// The upper bound of the first pause; it doubles for each further one.
  public var backoff: Milliseconds = 100
  /// The maximum of that bound.
  public var maxBackoff: Milliseconds = 2000
  /// The maximum share of the upstream's requests in flight that are retries, in percent.
  public var budget = 20
  /// The statuses of class `retry` after which Semel makes the next attempt.
  public var on: [Int] = [408, 425, 429, 503]

  public init() {}
}

/// The end of an attempt that leaves its record free to claim.
public enum RetriableEnd: Sendable, Equatable {
  /// A complete response of class `retry`.
  case response(status: Int, retryAfter: RetryAfter)
  /// The request was certainly not executed.
  case notExecuted
}

/// Semel's decision on a next attempt of its own.
public enum RetryDecision: Sendable, Equatable {
  /// The attempt's end is none that the route retries.
  case pass
  /// The next attempt follows after this pause.
  case wait(Milliseconds)
  /// The route retries such an end, but not now.
  case stop(RetryStop)
}

/// The reason for which no further retry is made.
public enum RetryStop: Int, CaseIterable, Sendable {
  /// The maximum number of retries or of attempts is reached.
  case exhausted
  /// The next attempt would begin after `wait_timeout`, or at an unknown time.
  case late
  /// The upstream's retry budget is spent.
  case budget
}

extension RetryPolicy {
  /// Decides on the retry after an attempt: exponential backoff with full jitter, and no earlier than the backend
  /// wants.
  ///
  /// - Parameters:
  ///   - made: The number of retries that were made for the delivery before.
  ///   - unsent: The number of those that followed an attempt of which nothing was sent. They do not count towards
  ///     `max`: the time bounds them.
  ///   - elapsed: The time since the first attempt of the delivery began.
  ///   - limit: The time from that moment in which a retry may begin.
  public func decision(
    after end: RetriableEnd, made: Int, unsent: Int = 0, elapsed: Milliseconds,
    limit: Milliseconds,
    using random: inout some RandomNumberGenerator
  ) -> RetryDecision {
    invariant(unsent <= made, "more retries follow unsent attempts than were made")
    var min: Milliseconds = 0
    if case .response(let status, let retryAfter) = end {
      guard on.contains(status) else { return .pass }
      switch retryAfter {
      case .none: break
      case .span(let span): min = span
      case .unreadable: return .stop(.late)
      }
    }
    guard end == .notExecuted || made - unsent < max else { return .stop(.exhausted) }
    let pause = Swift.max(min, Milliseconds(Int64.random(in: 0...bound(after: made).count, using: &random)))
    return elapsed + pause <= limit ? .wait(pause) : .stop(.late)
  }

  /// The upper bound of the pause after so many retries.
  private func bound(after made: Int) -> Milliseconds {
    // Thirty doublings exceed every maximum.
    let (bound, overflow) = backoff.count.multipliedReportingOverflow(by: 1 << Int64(Swift.min(made, 30)))
    return overflow ? maxBackoff : Swift.min(maxBackoff, Milliseconds(bound))
  }
}

/// The retry budget of one upstream: of its requests in flight, only a share may be retries, so that an outage is not
/// made worse by them. The rule is that of Envoy's retry budget.
///
/// Requests of routes without retries are not counted, which makes the budget smaller, never larger.
public struct RetryBudget: Sendable, Equatable {
  /// The number of retries that may always be made at once: a share of few requests would allow none.
  public static let min = 3

  /// The number of requests that have been claimed and have not ended, those that wait for a retry included.
  public private(set) var inFlight = 0
  /// The number of them that wait for a retry, or have begun one.
  public private(set) var retrying = 0

  public init() {}

  public mutating func began() { inFlight += 1 }

  /// Takes a place for the retries of one request; false if the budget is spent.
  public mutating func beginRetrying(percent: Int) -> Bool {
    guard retrying < max(Self.min, inFlight * percent / 100) else { return false }
    retrying += 1
    invariant(retrying <= inFlight, "more requests are retried than are in flight")
    return true
  }

  public mutating func ended(isRetrying: Bool) {
    invariant(inFlight > 0, "a request ended that never began")
    inFlight -= 1
    if isRetrying { retrying -= 1 }
    invariant(retrying >= 0 && retrying <= inFlight, "a place for retries is given back twice")
  }
}
