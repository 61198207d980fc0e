/// An exchange with the backend that ended with a complete response, as `ClaimLifecycle` decides on it.
public struct CompletedExchange: Sendable {
  /// The status of the response.
  public let status: Int
  /// The backend's instructions in the response.
  public let steering: Steering
  /// Whether a renewal of the claim was ever requested, so that a copy of it may still be on its way to the store.
  public let isRenewed: Bool
  /// Whether the request is a DELETE.
  public let isDelete: Bool
  /// Whether the client has a part of the response already, which another response can no longer replace.
  public let isRelayed: Bool
  /// Whether another item of the same batch follows an unknown outcome, which the response may be about.
  public let isBesideUnknown: Bool

  public init(
    status: Int, steering: Steering, isRenewed: Bool, isDelete: Bool = false, isRelayed: Bool = false,
    isBesideUnknown: Bool = false
  ) {
    self.status = status
    self.steering = steering
    self.isRenewed = isRenewed
    self.isDelete = isDelete
    self.isRelayed = isRelayed
    self.isBesideUnknown = isBesideUnknown
  }
}

// The end of the exchange with the backend.
extension ClaimLifecycle {
  /// The runner's next step after a complete response.
  public enum RespondedAction: Sendable, Equatable {
    /// Complete the record with the response, then pass it on.
    case complete(retention: Milliseconds, remember: Milliseconds)
    /// Complete the record with 204 in place of the response, and send that: an earlier attempt has deleted what the
    /// request names.
    case completeAsDeleted(retention: Milliseconds, remember: Milliseconds)
    /// Release the record, then pass the response on.
    case release(Release)
    /// Mark the record unknown, then pass the response on.
    case markUnknown
  }

  /// Decides on an exchange with the backend that ended with a complete response.
  public mutating func responded(_ exchange: CompletedExchange) -> RespondedAction {
    let claim: Claim
    let isLate: Bool
    switch state {
    case .owning(let held): (claim, isLate) = (held, false)
    case .listening(let held): (claim, isLate) = (held, true)
    default: preconditionFailure("ClaimLifecycle: responded without a claim")
    }
    state = .settling(claim)
    let (status, steering) = (exchange.status, exchange.steering)
    let isOnlyRejected = isOnlyRejected(by: status, to: claim)
    switch outcomeClass(
      of: status, steering: steering, to: claim, isBesideUnknown: exchange.isBesideUnknown)
    {
    case .final:
      let retention =
        steering.retention.map { max(.seconds(1), min($0, route.policy.remember)) } ?? route.policy.retention
      guard exchange.isDelete, !exchange.isRelayed,
        meansDeleted(status: status, steering: steering, to: claim)
      else {
        return .complete(retention: retention, remember: route.policy.remember)
      }
      return .completeAsDeleted(retention: retention, remember: route.policy.remember)
    case .retry:
      // A delayed copy of a renewal or of `markUnknown` may still be run, and would make a deleted record anew
      // (Tests/Model/claim.pml, LATE_DELETE).
      let mayBeDeleted = isOnlyRejected && !exchange.isRenewed && !isLate
      let release: Release = mayBeDeleted ? .deleted : .remembered
      // The client of a late response has its refusal already.
      if !isLate { state = .releasing(claim, release) }
      return .release(release)
    case .unknown:
      return .markUnknown
    }
  }

  /// The runner's next step without a complete response.
  public enum FailedAction: Sendable {
    /// Release the record, since nothing was executed, then refuse.
    case release(Problem)
    /// Mark the record unknown, then refuse.
    case markUnknown(Problem)
    /// Mark the record unknown, refuse, and wait for a late response for this time.
    case listen(Milliseconds, Problem)
    /// Do nothing: the client was refused, and the record is marked unknown.
    case giveUp
  }

  /// Decides on an exchange with the backend that ended without a complete response.
  public mutating func failed(_ failure: UpstreamFailure) -> FailedAction {
    switch state {
    case .owning(let claim):
      switch failure {
      case .notSent:
        state = .releasing(claim, .remembered)
        return .release(.upstreamUnreachable)
      case .busy:
        state = .releasing(claim, .remembered)
        return .release(.overloaded(.backend))
      case .headTooLarge:
        state = .releasing(claim, .remembered)
        return .release(.headerTooLarge)
      case .responseLost, .requestBody:
        state = .settling(claim)
        return .markUnknown(.responseLost(.broken, retryAfter: route.policy.retryAfterLoss(age: 0)))
      case .timedOut:
        state = .listening(claim)
        return .listen(
          route.policy.upstream.settle,
          .responseLost(.timedOut, retryAfter: route.policy.retryAfterLoss(age: 0)))
      }
    case .listening:
      state = .ended
      return .giveUp
    default:
      preconditionFailure("ClaimLifecycle: failed without a claim")
    }
  }
}
