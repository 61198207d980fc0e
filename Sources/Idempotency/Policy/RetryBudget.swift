import Wire

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
