import Wire

extension RoutePolicy {
  /// The class of a complete response: by the backend's own steering field, else by the route's table.
  ///
  /// - Parameters:
  ///   - isOnlyRejected: Whether this attempt and all before it met only 401, 403 or 429: none of them counts towards
  ///     `max_attempts`.
  ///   - isBesideUnknown: Whether another intent of the same request follows an unknown outcome.
  public func outcomeClass(
    of status: Int, steering: Steering, claim: Claim, isOnlyRejected: Bool = false,
    isBesideUnknown: Bool = false
  ) -> OutcomeClass {
    let own = ownClass(of: status, steering: steering, claim: claim, isBesideUnknown: isBesideUnknown)
    let isLastAttempt = maxAttempts.map { claim.ordinal >= $0 } ?? false && !isOnlyRejected
    return own == .retry && isLastAttempt ? .final : own
  }

  /// The class that a response has however many attempts there were.
  func ownClass(
    of status: Int, steering: Steering, claim: Claim, isBesideUnknown: Bool = false
  ) -> OutcomeClass {
    // The backend's own check for duplicates may have refused this attempt because of the one whose response was lost.
    let followsUnknown = claim.followsUnknown || isBesideUnknown
    let maySeeLost = followsUnknown && (status == 409 || status == 412)
    let listed = maySeeLost && !outcomes.isNamed(status: status) ? .unknown : outcomes[status]
    return steering.outcome(listed: listed)
  }

  /// Whether the backend's effect remains unknown after this complete response to a request without a record.
  public func leavesUnknown(_ head: MessageHead) -> Bool {
    Steering(of: head).outcome(listed: outcomes[head.status]) == .unknown
  }

  /// The time after which a client may retry with the same key when a response was lost; `nil` if only an operator can
  /// end the record.
  ///
  /// An outcome may settle within `settle` of its loss, and at any time where a later delivery may take the record
  /// over.
  public func retryAfterLoss(age: Milliseconds) -> Milliseconds? {
    let left = upstream.settle - age
    if left > 0 { return left }
    return onUnknown == .hold ? nil : 1000
  }
}
