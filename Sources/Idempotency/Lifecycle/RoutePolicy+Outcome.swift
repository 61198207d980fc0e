import Wire

extension RoutePolicy {
  /// The class of a complete response: by the backend's own steering field, else by the route's rules, else by its
  /// table and what the response says of its sender. A rejection does not count towards `max_attempts`, and is never
  /// final by that.
  ///
  /// - Parameter isBesideUnknown: Whether another intent of the same request follows an unknown outcome.
  public func outcomeClass(
    of status: Int, steering: Steering, claim: Claim, isBesideUnknown: Bool = false
  ) -> OutcomeClass {
    let own = ownClass(of: status, steering: steering, attempt: claim.attempt)
    let isLastAttempt = maxAttempts.map { claim.sendings >= $0 } ?? false
    let isExhausted = isLastAttempt && !steering.isRejection(status)
    let outcome: OutcomeClass = own == .retry && isExhausted ? .final : own
    guard claim.followsUnknown || isBesideUnknown, steering.outcome == nil,
      maySeeLost(status, outcome, steering)
    else { return outcome }
    // A refusal (4xx) of requests that were sent together says of those that were not lost that they did not run.
    return claim.followsUnknown || !(400..<500 ~= status) ? .unknown : .retry
  }

  /// The class that a complete response has where an earlier attempt has ended unknown.
  public func outcomeClassAfterLoss(of status: Int, steering: Steering) -> OutcomeClass {
    let own = ownClass(of: status, steering: steering, attempt: 2)
    return steering.outcome == nil && maySeeLost(status, own, steering) ? .unknown : own
  }

  /// Whether a conflict comes from the backend's own table of keys, which has the request in progress by a delivery beside
  /// this one: it says so, or no attempt of Semel's can be the one that it met.
  private func isBeside(_ signs: ResponseSigns, _ attempt: Int?) -> Bool {
    signs.statesKeyInUse || behind == .ownKeys && attempt == 1
  }

  /// Whether a response after a lost outcome may come from the backend's own check for duplicates, which has met the
  /// attempt that was lost: any final one but a success. A conflict or a failed condition may, of whatever class it is.
  private func maySeeLost(_ status: Int, _ outcome: OutcomeClass, _ steering: Steering) -> Bool {
    let isNamed = steering.rule?.isNamed ?? outcomes.isNamed(status: status)
    guard !(200..<300 ~= status), !isNamed else { return false }
    return switch outcome {
    case .final: true
    case .retry: status == 409 || status == 412
    case .unknown: false
    }
  }

  /// The class that a response has by itself, without regard to `max_attempts` and to a lost outcome.
  ///
  /// - Parameter attempt: The number of the request's attempt; `nil` if it has no record.
  public func ownClass(of status: Int, steering: Steering, attempt: Int?) -> OutcomeClass {
    steering.outcome(listed: listedClass(of: status, steering, attempt))
  }

  private func listedClass(of status: Int, _ steering: Steering, _ attempt: Int?) -> OutcomeClass {
    let signs = steering.signs
    let listed = steering.rule?.verdict.outcome ?? outcomes[status]
    if signs.lacksDocument, listed == .final { return .retry }
    guard steering.rule == nil else { return listed }
    switch status {
    case 409 where (signs.hasRetryAfter || isBeside(signs, attempt)) && !outcomes.isListed(status: status):
      return .retry
    case 408 where signs.mayFollowRun && !outcomes.isListed(status: status): return .unknown
    case 503 where signs.mayFollowRun && !outcomes.isListed(status: status):
      return signs.hasRetryAfter || signs.statesUnsent ? listed : .unknown
    default: return listed
    }
  }

  /// Whether the backend's effect remains unknown after this complete response to a request without a record.
  public func leavesUnknown(_ head: MessageHead) -> Bool {
    ownClass(of: head.status, steering: Steering(of: head, by: self), attempt: nil) == .unknown
  }

  /// The time after which a client may retry with the same key when a response was lost; `nil` if only an operator can
  /// end the record.
  ///
  /// An outcome may settle within `settle` of its loss, and at any time where a later delivery may take the record
  /// over. That waits for `settle` in any case: a backend may go on running a request whose connection has ended.
  ///
  /// - Parameter isOver: Whether the exchange has ended, so that no late response can come.
  public func retryAfterLoss(age: Milliseconds, isOver: Bool = false) -> Milliseconds? {
    if isOver, onUnknown == .hold { return nil }
    let left = upstream.settle - age
    if left > 0 { return left }
    return onUnknown == .hold ? nil : 1000
  }
}
